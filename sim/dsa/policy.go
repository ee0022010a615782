package dsa

// Policy picks blocks from the scores of one group in one step. It writes the
// indices of the picked blocks to dst[:0], in any order and without repeats,
// and returns them. prev is what it picked in the step before, or empty: a
// hint that may save time and must not change the outcome.
type Policy interface {
	Pick(scores []float32, prev, dst []uint16) []uint16
	// Limit is the most blocks that Pick returns.
	Limit() int
}

// TopK picks the K blocks of the highest score, or all when there are fewer;
// of equal scores the earlier block wins. ArkVale, Quest and SparseServe
// select so.
type TopK struct{ K int }

// Limit returns K.
func (p TopK) Limit() int { return p.K }

// Pick implements Policy in O(len(scores)).
func (p TopK) Pick(scores []float32, prev, dst []uint16) []uint16 {
	dst = dst[:0]
	if len(scores) <= p.K {
		for i := range scores {
			dst = append(dst, uint16(i))
		}
		return dst
	}
	if len(prev) != p.K {
		prev = nil
	}
	cut, ties := kthLargest(scores, p.K, prev)
	for i, s := range scores {
		if s >= cut {
			if s == cut {
				if ties == 0 {
					continue
				}
				ties--
			}
			dst = append(dst, uint16(i))
		}
	}
	return dst
}

// kthLargest returns the k-th largest score and how many scores equal to it
// belong to the k largest. It keeps a min-heap of k scores. Started from the
// blocks picked a step ago, most of which are picked again, almost every other
// score fails its first comparison.
func kthLargest(scores []float32, k int, prev []uint16) (cut float32, ties int) {
	var store [256]float32
	h := store[:0]
	if k > len(store) {
		h = make([]float32, 0, k)
	}
	var marks [64]uint64 // which blocks are in the heap's start; room for 4,096
	in := marks[:]
	if len(scores) > 64*len(marks) {
		in = make([]uint64, (len(scores)+63)/64)
	}
	if prev == nil {
		h = append(h, scores[:k]...)
		for b := range k {
			in[b/64] |= 1 << (b % 64)
		}
	}
	for _, b := range prev {
		h = append(h, scores[b])
		in[b/64] |= 1 << (b % 64)
	}
	for i := k/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
	for b, s := range scores {
		if s > h[0] && in[b/64]&(1<<(b%64)) == 0 {
			h[0] = s
			siftDown(h, 0)
		}
	}
	cut = h[0]
	for _, s := range h {
		if s == cut {
			ties++
		}
	}
	return cut, ties
}

func siftDown(h []float32, i int) {
	v := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if h[c] >= v {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = v
}
