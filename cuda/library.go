package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/ebitengine/purego"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Version is the interface version that this package speaks: SS_VERSION of sparseserve.h.
const Version = 11

// LibraryEnv names the environment variable that gives the library's path.
const LibraryEnv = "SPARSESERVE_CUDA_LIB"

const libraryName = "libsparseserve.so"

// Library is an open libsparseserve.so and the OS thread that calls it first; other threads that
// call it, such as cuda/live's, select the GPU for themselves. Its methods may be called from any
// goroutine, but not from inside Do.
type Library struct {
	// Path is the file that was opened.
	Path string

	session *Session
	work    chan func()
	closed  chan struct{}
	close   sync.Once
}

// Open finds and opens the library and checks its version; it needs no GPU. The path is, in this
// order: path if not empty, the environment variable SPARSESERVE_CUDA_LIB, libsparseserve.so next
// to the program, cuda/build/libsparseserve.so below the working folder if that is a checkout.
func Open(path string) (*Library, error) {
	found, err := find(path)
	if err != nil {
		return nil, err
	}
	handle, err := purego.Dlopen(found, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("%w: %s does not load: %w", ErrNoLibrary, found, err)
	}
	session, err := bind(handle, found)
	if err != nil {
		purego.Dlclose(handle)
		return nil, err
	}
	l := &Library{Path: found, session: session, work: make(chan func()),
		closed: make(chan struct{})}
	go l.serve()
	return l, nil
}

// Do runs f on the library's thread and returns its error. Calls of Do are serialised.
func (l *Library) Do(f func(*Session) error) error {
	var err error
	ended := make(chan struct{})
	task := func() {
		defer close(ended)
		err = f(l.session)
	}
	select {
	case l.work <- task:
	case <-l.closed:
		return ErrClosed
	}
	<-ended
	return err
}

// Close ends the library's thread. The library itself stays mapped: the CUDA runtime does not
// survive being unloaded.
func (l *Library) Close() {
	l.close.Do(func() { close(l.closed) })
}

// serve runs the tasks on one OS thread: the selected GPU, the error text and cuBLAS's handle
// belong to the thread that made them.
func (l *Library) serve() {
	runtime.LockOSThread()
	for {
		select {
		case task := <-l.work:
			task()
		case <-l.closed:
			return
		}
	}
}

// find returns the library's file. An explicitly given path must exist; only the default places are
// tried in order.
func find(path string) (string, error) {
	given := "given path"
	if path == "" {
		path, given = os.Getenv(LibraryEnv), LibraryEnv
	}
	if path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrNoLibrary, given, err)
		}
		return filepath.Abs(path) // of a name alone, other folders would be searched
	}
	var places []string
	if program, err := os.Executable(); err == nil {
		places = append(places, filepath.Join(filepath.Dir(program), libraryName))
	}
	only := ""
	if built := filepath.Join("cuda", "build", libraryName); isCheckout() {
		places = append(places, built)
	} else {
		only = "; the working folder is no checkout of sparseserve, so " + built + " is not tried"
	}
	for _, place := range places {
		if _, err := os.Stat(place); err == nil {
			return filepath.Abs(place)
		}
	}
	return "", fmt.Errorf("%w: tried %s%s; build it with 'make cuda' or set %s", ErrNoLibrary,
		strings.Join(places, ", "), only, LibraryEnv)
}

// isCheckout reports whether the working folder is a checkout of this module. In other folders a
// library of that name is not opened, because it could be foreign code.
func isCheckout() bool {
	text, err := files.ReadText("go.mod")
	return err == nil && strings.HasPrefix(string(text), "module github.com/sparseserve/sparseserve\n")
}
