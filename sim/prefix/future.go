package prefix

import "math"

// Future is what requests will ask of tiers below HBM: their prompts' chunks, in order of arrival.
// Its next use of a chunk is by the first request that has it and has yet to begin its prefill.
type Future struct {
	chunk  int // tokens
	ids    map[uint64]int32
	keys   []uint64
	depth  []int32 // of each chunk: its place in its prompt
	chunks []int32 // of all requests, one after another
	starts []int   // of each request's
	uses   []int32 // of all chunks, one after another: requests
	first  []int   // of each chunk, in uses: that has yet to begin
	end    []int
	begun  []bool // by request
}

// NewFuture returns the future of no request, in chunks of so many tokens.
func NewFuture(chunk int) *Future {
	return &Future{chunk: chunk, ids: map[uint64]int32{}, starts: []int{0}}
}

// Add adds a request, of the next number from 1 on. A prompt that is cut to so many tokens has in
// common what Table.Reset says; one of 0 tokens is never asked for.
func (f *Future) Add(content *Content, given, prompt int) {
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

// Requests is how many there are.
func (f *Future) Requests() int { return len(f.starts) - 1 }

// Ready sorts the uses once all requests are known.
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

// due orders chunks by their next use, and of one prompt by their place in it: a chunk is of no use
// without those before it.
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

// begins notes that the request of a number begins its prefill: what it uses is due again later.
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

// refuses says whether a chunk would be the first to leave a tier that knows the future.
func (t *tier) refuses(key uint64) bool {
	return t.future != nil && t.capacity > 0 && t.index.n == t.capacity &&
		t.index.find(t.keys, key) < 1 && t.future.due(key) >= t.due[t.heap[0]]
}

// date puts a place into the heap of those that are due, last first: a new one, or one whose chunk
// is another now.
func (t *tier) date(i int32) {
	if t.future == nil {
		return
	}
	for int(i) >= len(t.due) {
		t.due, t.at = append(t.due, 0), append(t.at, -1)
	}
	if t.at[i] < 0 {
		t.at[i] = int32(len(t.heap))
		t.heap = append(t.heap, i)
	}
	t.due[i] = t.future.due(t.keys[i])
	t.sift(i)
}

// redate is date of a chunk, if it is there.
func (t *tier) redate(key uint64) {
	if i := t.index.find(t.keys, key); i > 0 {
		t.date(i)
	}
}

// sift moves a place up or down the heap to where it belongs.
func (t *tier) sift(i int32) {
	at := int(t.at[i])
	set := func(at int, i int32) { t.heap[at], t.at[i] = i, int32(at) }
	for at > 0 && t.due[t.heap[(at-1)/2]] < t.due[i] {
		set(at, t.heap[(at-1)/2])
		at = (at - 1) / 2
	}
	for {
		child := 2*at + 1
		if child+1 < len(t.heap) && t.due[t.heap[child+1]] > t.due[t.heap[child]] {
			child++
		}
		if child >= len(t.heap) || t.due[t.heap[child]] <= t.due[i] {
			break
		}
		set(at, t.heap[child])
		at = child
	}
	set(at, i)
}
