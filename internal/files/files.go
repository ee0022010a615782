// Package files opens files that users name. A FIFO without a writer, or an endless device, never
// blocks the program.
package files

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"syscall"
	"unicode"

	"github.com/BurntSushi/toml"
)

// mostText is the maximum size of a configuration, model or pattern file, in bytes.
const mostText = 64 << 20

// Open opens a file for reading. A FIFO without a writer is empty.
func Open(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// ReadText reads a configuration, or another small text.
func ReadText(path string) ([]byte, error) {
	f, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if f, e := openMember(path, err); e == nil {
			defer f.Close()
			return readLimited(path, f, mostText)
		}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readLimited(path, f, mostText)
	if info, e := f.Stat(); err == nil && len(text) == 0 && e == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: empty; nothing was written to it", path)
	}
	return text, err
}

// ReadJSON reads a JSON file that a command made.
func ReadJSON(path string, into any) error {
	text, err := ReadResult(path)
	if err != nil {
		return err
	}
	return ParseJSON(path, text, into)
}

// ParseJSON decodes the text of a JSON file. Its error names file, line and key.
func ParseJSON(path string, text []byte, into any) error {
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case len(bytes.TrimSpace(text)) == 0:
		return fmt.Errorf("%s: empty", path)
	case errors.As(err, &syntax):
		line, column := placeOf(text, syntax.Offset-1)
		return fmt.Errorf("%s:%d: damaged, no valid JSON at column %d: %s", path, line, column,
			JSONWords(err))
	case errors.As(err, &kind):
		line, _ := placeOf(text, kind.Offset)
		return fmt.Errorf("%s:%d: %s", path, line, JSONWords(err))
	}
	return fmt.Errorf("%s: damaged: %w", path, err)
}

// placeOf returns line and column of a byte of a text, from 1.
func placeOf(text []byte, offset int64) (line, column int) {
	before := text[:min(max(int(offset), 0), len(text))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// kinds maps Go types to the JSON values that they take. All other kinds are integers.
var kinds = map[reflect.Kind]string{
	reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list",
	reflect.Array: "a list", reflect.Struct: "an object", reflect.Map: "an object",
	reflect.Float32: "a number", reflect.Float64: "a number",
}

// kindOf returns the JSON name of a type.
func kindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(kinds[t.Kind()], "an integer")
}

// JSONWords describes the fault of a text that was decoded as JSON.
func JSONWords(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF.Error()
	case !errors.As(err, &kind):
		return strings.TrimPrefix(err.Error(), "json: ")
	case kind.Field == "":
		return fmt.Sprintf("want %s, got %s", kindOf(kind.Type), kind.Value)
	}
	key := kind.Field[strings.LastIndexFunc(kind.Field, unicode.IsUpper)+1:]
	if _, inner, ok := strings.Cut(key, "."); ok && len(key) < len(kind.Field) {
		key = inner // what precedes is a type's name
	}
	return fmt.Sprintf("%s: want %s, got %s", key, kindOf(kind.Type), kind.Value)
}

// TOMLFault describes the fault of a TOML file's text, with its line, in the decoder's words.
func TOMLFault(path, text string, err error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%s: no valid TOML: %w", path, err)
	}
	line := 1 + strings.Count(text[:min(parse.Position.Start, len(text))], "\n")
	return fmt.Errorf("%s:%d: no valid TOML: %s", path, line, parse.Message)
}

// DecodeTOML decodes the text of a TOML file. Its error names file and line.
func DecodeTOML(path, text string, into any) error {
	if _, err := toml.Decode(text, into); err != nil {
		return TOMLFault(path, text, err)
	}
	return nil
}

// PackedFault describes the fault of compressed data of a kind. It returns system errors unchanged.
// It hides io.EOF, which means that data end too early.
func PackedFault(kind string, err error) error {
	var system *fs.PathError
	if errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("damaged %s data: %v", kind, err)
}
