package memory

import (
	"fmt"
	"slices"
)

// readers counts the decoding requests that read each HBM block, so that a step knows which KV its
// dense attention reads repeatedly. Only the blocks that a request has at its first decode count:
// its generated blocks are private until it ends.
type readers struct {
	of    []int32  // readers by block
	read  []*Grant // in any order
	step  int64
	now   int   // grants read in this step
	again int64 // repeated reads, summed over blocks
}

// Read records that a grant is read in this step, if it may share blocks.
func (r *readers) Read(g *Grant) {
	if len(g.blocks) == 0 {
		return
	}
	if r.now++; g.readers.blocks == 0 {
		r.begin(g)
	}
	g.readers.step = r.step
}

// Reread ends the step and returns the number of repeated block reads: for each block, its readers
// minus one.
func (r *readers) Reread() (blocks int64) {
	if r.now == 0 {
		return 0 // keep the previous step's grants, which are probably read again
	}
	for i := len(r.read) - 1; i >= 0 && len(r.read) > r.now; i-- {
		if t := r.read[i]; t.readers.step != r.step {
			r.end(t)
		}
	}
	r.step, r.now = r.step+1, 0
	return r.again
}

func (r *readers) begin(g *Grant) {
	g.readers.at, g.readers.blocks = len(r.read), len(g.blocks)
	r.read = append(r.read, g)
	for _, b := range g.blocks {
		for int(b) >= len(r.of) {
			r.of = append(r.of, 0)
		}
		if r.of[b]++; r.of[b] > 1 {
			r.again++
		}
	}
}

// end removes a grant from the readers, if it is one.
func (r *readers) end(g *Grant) {
	if g.readers.blocks == 0 {
		return
	}
	for _, b := range g.blocks[:g.readers.blocks] {
		if r.of[b]--; r.of[b] > 0 {
			r.again--
		}
	}
	last := len(r.read) - 1
	r.read[g.readers.at] = r.read[last]
	r.read[g.readers.at].readers.at = g.readers.at
	r.read = r.read[:last]
	g.readers = reading{}
}

// check verifies the counts against all grants that are read.
func (r *readers) check() error {
	of, again := make([]int32, len(r.of)), int64(0)
	for i, t := range r.read {
		if t.readers.at != i || t.readers.blocks == 0 || t.readers.blocks > len(t.blocks) {
			return fmt.Errorf("a grant of %d blocks is read as %+v at place %d", len(t.blocks), t.readers, i)
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

// reading is the state of a grant in readers.
type reading struct {
	blocks int // leading blocks that count; 0: the grant is not read
	at     int // index in readers.read
	step   int64
}
