package prefix

import (
	"fmt"
	"slices"
)

// readers counts how many of the requests that decode together read each block of HBM, so that a
// step knows what its dense attention reads more than once. A request reads the blocks that it has
// when it first decodes: what it generates itself is nobody else's before it has ended.
type readers struct {
	of    []int32  // of each block
	read  []*Table // in any order
	step  int64
	now   int   // tables of this step
	again int64 // blocks, each counted for its readers but the first
}

// Read has a table be read in this step.
func (r *readers) Read(t *Table) {
	if r.now++; t.readers.blocks == 0 {
		r.begin(t)
	}
	t.readers.step = r.step
}

// Reread ends the step and returns how many blocks it read again, summed over tables: each block
// counts once less than it has tables.
func (r *readers) Reread() (blocks int64) {
	if r.now == 0 {
		return 0 // those of the step before probably read on
	}
	for i := len(r.read) - 1; i >= 0 && len(r.read) > r.now; i-- {
		if t := r.read[i]; t.readers.step != r.step {
			r.end(t)
		}
	}
	r.step, r.now = r.step+1, 0
	return r.again
}

func (r *readers) begin(t *Table) {
	t.readers.at, t.readers.blocks = len(r.read), len(t.blocks)
	r.read = append(r.read, t)
	for _, b := range t.blocks {
		for int(b) >= len(r.of) {
			r.of = append(r.of, 0)
		}
		if r.of[b]++; r.of[b] > 1 {
			r.again++
		}
	}
}

// end has a table not be read any more; it may not have been.
func (r *readers) end(t *Table) {
	if t.readers.blocks == 0 {
		return
	}
	for _, b := range t.blocks[:t.readers.blocks] {
		if r.of[b]--; r.of[b] > 0 {
			r.again--
		}
	}
	last := len(r.read) - 1
	r.read[t.readers.at] = r.read[last]
	r.read[t.readers.at].readers.at = t.readers.at
	r.read = r.read[:last]
	t.readers = reading{}
}

// check recounts what is read.
func (r *readers) check() error {
	of, again := make([]int32, len(r.of)), int64(0)
	for i, t := range r.read {
		if t.readers.at != i || t.readers.blocks == 0 || t.readers.blocks > len(t.blocks) {
			return fmt.Errorf("a table of %d blocks is read as %+v at place %d", len(t.blocks), t.readers, i)
		}
		for _, b := range t.blocks[:t.readers.blocks] {
			if of[b]++; of[b] > 1 {
				again++
			}
		}
	}
	if again != r.again || !slices.Equal(of, r.of) {
		return fmt.Errorf("%d blocks are read again, %d are counted", again, r.again)
	}
	return nil
}

// reading is what readers know of a table.
type reading struct {
	blocks int // of the table, the first, that count; 0: it is not read
	at     int // its place among those that are read
	step   int64
}
