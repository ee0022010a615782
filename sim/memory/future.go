package memory

import (
	"math"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Future lists the chunks of upcoming prompts in order of arrival. The next use of a chunk is the
// first request that contains it and has not begun its prefill.
type Future struct {
	chunk  int // tokens
	ids    map[uint64]int32
	keys   []uint64
	depth  []int32   // by chunk: position in its prompt
	uses   [][]int32 // by chunk: requests, from the first one on that has not begun
	chunks []int32   // chunks of all requests, concatenated
	starts []int     // by request: start in chunks
	begun  []bool    // by request
}

// NewFuture returns an empty Future with the given tokens per chunk.
func NewFuture(chunk int) *Future {
	return &Future{chunk: chunk, ids: map[uint64]int32{}, starts: []int{0}}
}

// Add adds the next request; numbers start at 1. A prompt truncated to prompt tokens shares only
// the part that Grant.Reset keeps. A prompt of 0 tokens has no uses.
func (f *Future) Add(content *prefix.Content, given, prompt int) {
	if content != nil {
		var t Grant
		t.Reset(content, given, prompt, 1, 0)
		known := 0
		for i, p := range t.pieces[:len(t.pieces)-1] {
			if i < len(content.Prompt) && p.ID == content.Prompt[i].ID {
				known += p.Tokens
			}
		}
		for end := f.chunk; end < prompt && end <= known; end += f.chunk {
			key, _ := t.chain.Key(end)
			id, ok := f.ids[key]
			if !ok {
				id = int32(len(f.depth))
				f.ids[key] = id
				f.keys, f.depth = append(f.keys, key), append(f.depth, int32(end/f.chunk))
				f.uses = append(f.uses, nil)
			}
			f.chunks = append(f.chunks, id)
			f.uses[id] = append(f.uses[id], int32(f.Requests()))
		}
	}
	f.starts, f.begun = append(f.starts, len(f.chunks)), append(f.begun, false)
}

// Requests returns the number of requests.
func (f *Future) Requests() int { return len(f.begun) }

// due returns the sort key of a chunk's next use. Within a prompt, later chunks are due later,
// because a chunk is useless without the chunks before it.
func (f *Future) due(key uint64) uint64 {
	id, ok := f.ids[key]
	if !ok {
		return math.MaxUint64
	}
	uses := f.uses[id]
	for len(uses) > 0 && f.begun[uses[0]] {
		uses = uses[1:]
	}
	if f.uses[id] = uses; len(uses) == 0 {
		return math.MaxUint64
	}
	return uint64(uses[0])<<32 | uint64(f.depth[id])
}

// begins records that a request begins its prefill and updates the next use of its chunks.
func (l *Lower) begins(number uint64) {
	f := l.Future
	if l.Eviction != Belady || f.begun[number-1] {
		return
	}
	f.begun[number-1] = true
	for _, id := range f.chunks[f.starts[number-1]:f.starts[number]] {
		l.dram.redate(f.keys[id])
		l.ssd.redate(f.keys[id])
	}
}

// refuses reports whether a tier with Belady's eviction would evict the chunk first.
func (t *tier) refuses(key uint64) bool {
	return t.future != nil && t.capacity > 0 && t.index.Len() == t.capacity &&
		t.index.Find(t.keys, key) < 1 && t.future.due(key) >= t.due[t.heap.Top()]
}

// date updates the place of a new or replaced chunk in the heap, furthest next use first.
func (t *tier) date(i int32) {
	if t.future == nil {
		return
	}
	for int(i) >= len(t.due) {
		t.due, t.at = append(t.due, 0), append(t.at, -1)
	}
	if t.due[i] = t.future.due(t.keys[i]); t.at[i] < 0 {
		t.heap.Push(i)
	} else {
		t.heap.Fix(int(t.at[i]))
	}
}

// redate updates a chunk's heap entry if the chunk is present.
func (t *tier) redate(key uint64) {
	if i := t.index.Find(t.keys, key); i > 0 {
		t.date(i)
	}
}
