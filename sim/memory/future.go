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
	depth  []int32 // by chunk: position in its prompt
	chunks []int32 // chunks of all requests, concatenated
	starts []int   // by request: start in chunks
	uses   []int32 // requests of all chunks, concatenated
	first  []int   // by chunk: index in uses of the first request that has not begun
	end    []int
	begun  []bool // by request
}

// NewFuture returns an empty Future with the given tokens per chunk.
func NewFuture(chunk int) *Future {
	return &Future{chunk: chunk, ids: map[uint64]int32{}, starts: []int{0}}
}

// Add adds the next request; numbers start at 1. A prompt truncated to prompt tokens shares only
// the part that Table.Reset keeps. A prompt of 0 tokens has no uses.
func (f *Future) Add(content *prefix.Content, given, prompt int) {
	if content != nil {
		var t Table
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
			}
			f.chunks = append(f.chunks, id)
		}
	}
	f.starts = append(f.starts, len(f.chunks))
}

// Requests returns the number of requests.
func (f *Future) Requests() int { return len(f.starts) - 1 }

// Ready builds the index of uses after all requests are added.
func (f *Future) Ready() {
	f.end, f.first = make([]int, len(f.depth)), make([]int, len(f.depth))
	for _, id := range f.chunks {
		f.end[id]++
	}
	sum := 0
	for id, n := range f.end {
		f.first[id], f.end[id] = sum, sum
		sum += n
	}
	f.uses, f.begun = make([]int32, sum), make([]bool, len(f.starts)-1)
	for r := range f.begun {
		for _, id := range f.of(r) {
			f.uses[f.end[id]] = int32(r)
			f.end[id]++
		}
	}
}

func (f *Future) of(request int) []int32 { return f.chunks[f.starts[request]:f.starts[request+1]] }

// due returns the sort key of a chunk's next use. Within a prompt, later chunks are due later,
// because a chunk is useless without the chunks before it.
func (f *Future) due(key uint64) uint64 {
	id, ok := f.ids[key]
	if !ok {
		return math.MaxUint64
	}
	for f.first[id] < f.end[id] && f.begun[f.uses[f.first[id]]] {
		f.first[id]++
	}
	if f.first[id] == f.end[id] {
		return math.MaxUint64
	}
	return uint64(f.uses[f.first[id]])<<32 | uint64(f.depth[id])
}

// begins records that a request begins its prefill and updates the next use of its chunks.
func (l *Lower) begins(number uint64) {
	f := l.Future
	if l.Eviction != Belady || f.begun[number-1] {
		return
	}
	f.begun[number-1] = true
	for _, id := range f.of(int(number - 1)) {
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
