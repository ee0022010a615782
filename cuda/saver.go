package cuda

import "unsafe"

// Saver is the staging buffer and the thread pool of FlashD2H.
type Saver uintptr

// SaverCreate starts threads that scatter, with stages staging buffers of chunkBytes each.
func (s *Session) SaverCreate(threads int, chunkBytes int64, stages int) (saver Saver, err error) {
	err = s.call("ss_saver_create", uintptr(unsafe.Pointer(&saver)), uintptr(int32(threads)),
		uintptr(chunkBytes), uintptr(int32(stages)))
	return saver, err
}

// SaverDestroy waits for the running save and ends the threads.
func (s *Session) SaverDestroy(saver Saver) error {
	return s.call("ss_saver_destroy", uintptr(saver))
}

// LinearOpen loads cuBLAS from path; "" searches the usual names. The first linear does so too.
func (s *Session) LinearOpen(path string) error {
	c := append([]byte(path), 0)
	return s.call("ss_linear_open", uintptr(unsafe.Pointer(&c[0])))
}
