package cuda

import (
	"errors"
	"fmt"
)

// Reasons why a library did not open.
var (
	ErrNoLibrary = errors.New("no CUDA library")
	ErrNoSymbol  = errors.New("symbol missing in the CUDA library")
	ErrVersion   = errors.New("wrong version of the CUDA library")
	ErrClosed    = errors.New("CUDA library closed")
)

// Code is a result code of the library; errors.Is compares an *Error with it.
type Code int32

// The codes of sparseserve.h.
const (
	OK Code = iota
	BadArgument
	Failed
	NoDriver
	NoDevice
	Unsupported
	NoCuBLAS
	OutOfMemory
)

var codeNames = [...]string{"ok", "bad argument", "CUDA error", "no NVIDIA driver", "no GPU",
	"unsupported", "no cuBLAS", "out of memory"}

func (c Code) Error() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code %d", int32(c))
	}
	return codeNames[c]
}

// Error is a failed call: its name, code and the library's own text.
type Error struct {
	Call string
	Code Code
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v: %s", e.Call, e.Code, e.Text) }

// Is reports whether target is the error's code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}
