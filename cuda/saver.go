package cuda

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Saver is the staging buffer and the thread pool of FlashD2H.
type Saver uintptr

// SaverCreate starts threads that scatter, with stages staging buffers of chunkBytes each.
func (s *Session) SaverCreate(threads int, chunkBytes int64, stages int) (Saver, error) {
	var saver Saver
	f := s.symbols.saverCreate
	code, _, _ := purego.SyscallN(f.address, uintptr(unsafe.Pointer(&saver)),
		uintptr(int32(threads)), uintptr(chunkBytes), uintptr(int32(stages)))
	return saver, s.result(f, code)
}

// SaverDestroy waits for the running save and ends the threads.
func (s *Session) SaverDestroy(saver Saver) error {
	return s.handle(s.symbols.saverDestroy, uintptr(saver))
}

// SaveStart starts a save and returns at once. Launch of SaveArgs starts one and waits for it.
func (s *Session) SaveStart(a *SaveArgs) error {
	f := s.symbols.saveStart
	code, _, _ := purego.SyscallN(f.address, uintptr(unsafe.Pointer(a)))
	runtime.KeepAlive(a)
	return s.result(f, code)
}

// SaveWait blocks until the running save has written every block.
func (s *Session) SaveWait(saver Saver) error {
	return s.handle(s.symbols.saveWait,
		uintptr(saver))
}

// LinearOpen loads cuBLAS from path; "" searches the usual names. The first linear does so too.
func (s *Session) LinearOpen(path string) error {
	c := append([]byte(path), 0)
	f := s.symbols.linearOpen
	code, _, _ := purego.SyscallN(f.address, uintptr(unsafe.Pointer(&c[0])))
	runtime.KeepAlive(c)
	return s.result(f, code)
}
