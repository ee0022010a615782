package live

import "github.com/sparseserve/sparseserve/cuda"

// The saver's ring: places are reserved in order, and freed in order when jobs are done.

// ringBlocks returns the length of the ring in blocks.
func ringBlocks(bufferBytes, blockBytes int64) int64 { return max(64, bufferBytes/blockBytes) }

// hold keeps the second thread from starting work until release: saves must not progress in time
// that no step counts, or they would cost later steps nothing. Work in flight, a job or some
// hundreds of copies, finishes.
func (s *saver) hold() { s.held.Lock() }

func (s *saver) release() { s.held.Unlock() }

// pass waits while the saver is held.
func (s *saver) pass() {
	s.held.Lock()
	defer s.held.Unlock()
}

// most is the maximum number of blocks of a job: a fraction of the ring, so that copies into it and
// out of it overlap.
func (s *saver) most() int64 { return max(1, s.blocks/4) }

// reserve waits for n free blocks and returns their place, and the ring's head after them. waited
// reports whether it had to wait. All earlier reservations have been submitted.
func (s *saver) reserve(n int64) (at, end int64, waited bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head += s.padding(n)
	for s.head+n-s.tail > s.blocks && s.err == nil {
		if s.done == s.submitted { // only padding is left
			s.tail = s.head
			continue
		}
		waited = true
		s.moved.Wait()
	}
	at = s.head % s.blocks
	s.head += n
	return at, s.head, waited, s.err
}

// tryReserve is reserve without waiting.
func (s *saver) tryReserve(n int64) (at, end int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.head + s.padding(n)
	if from+n-s.tail > s.blocks {
		return 0, 0, false
	}
	s.head = from + n
	return from % s.blocks, s.head, true
}

// padding returns the blocks to skip at the ring's end, because a job is contiguous.
func (s *saver) padding(n int64) int64 {
	if end := s.blocks - s.head%s.blocks; end < n {
		return end
	}
	return 0
}

// to sets the destination of a reserved block.
func (s *saver) to(at int64, dst cuda.Ptr) { s.addresses[at] = int64(dst) }
