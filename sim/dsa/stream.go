package dsa

import "math/bits"

// Stream is the recorded selections of one group over a fixed number of
// candidate blocks: a circle of Steps steps of K block indices each. A block
// that stays selected from one step to the next keeps its position, so a step
// is read as a handful of changed positions.
//
// A stream is immutable after Record and safe for concurrent use.
type Stream struct {
	Candidates, K, Steps int

	ids   []uint16 // [Steps][K]
	diff  []uint64 // [Steps][words], positions that differ from the step before
	words int
}

// Record runs policy over the score rows of steps successive steps and keeps
// what it picks. row(t) returns the scores of step t, valid until the next call.
func Record(candidates, steps int, policy Policy, row func(t int) []float32) *Stream {
	k := min(policy.Limit(), candidates)
	s := &Stream{Candidates: candidates, K: k, Steps: steps, words: (k + 63) / 64}
	s.ids = make([]uint16, steps*k)
	s.diff = make([]uint64, steps*s.words)
	picker, picked := policy.Picker(), make([]uint16, 0, k)
	in := make([]uint64, (candidates+63)/64)
	for t := range steps {
		picked = picker.Pick(row(t), picked)
		if t == 0 {
			copy(s.ids, picked)
			continue
		}
		s.align(t, picked, in)
	}
	first, last := s.At(0), s.At(steps-1)
	for i := range first {
		if first[i] != last[i] {
			s.diff[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// align writes step t's picks so that blocks picked before keep their
// positions; newcomers take the positions of those dropped, in block order.
func (s *Stream) align(t int, picked []uint16, in []uint64) {
	clear(in)
	for _, b := range picked {
		in[b/64] |= 1 << (b % 64)
	}
	alignTo(s.At(t-1), s.At(t), s.diff[t*s.words:(t+1)*s.words], in)
}

// alignTo writes the blocks of the bitmap `in`, as many as prev has, to next so
// that those of prev keep their positions, and marks the others in diff, which
// is zero. It uses up the bitmap.
func alignTo(prev, next []uint16, diff, in []uint64) {
	for i, b := range prev {
		if in[b/64]&(1<<(b%64)) != 0 {
			in[b/64] &^= 1 << (b % 64)
			next[i] = b
		} else {
			diff[i/64] |= 1 << (i % 64)
		}
	}
	w := 0
	for d, word := range diff {
		for ; word != 0; word &= word - 1 {
			for in[w] == 0 {
				w++
			}
			next[d*64+bits.TrailingZeros64(word)] = uint16(w*64 + bits.TrailingZeros64(in[w]))
			in[w] &= in[w] - 1
		}
	}
}

// At returns the K blocks selected in step t, 0 <= t < Steps. Read only.
func (s *Stream) At(t int) []uint16 { return s.ids[t*s.K : (t+1)*s.K : (t+1)*s.K] }

// Diff returns the bitmap of positions at which At(t) differs from the step
// before it on the circle. Read only.
func (s *Stream) Diff(t int) []uint64 { return s.diff[t*s.words : (t+1)*s.words : (t+1)*s.words] }
