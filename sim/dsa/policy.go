package dsa

// Policy picks blocks from the scores of one group in one step. It writes the
// indices of the picked blocks to dst[:0], in any order and without repeats,
// and returns them. It picks min(k, len(scores)) blocks for its own k.
type Policy interface {
	Pick(scores []float32, dst []uint16) []uint16
	// Limit is the most blocks that Pick returns.
	Limit() int
}

// TopK picks the K blocks of the highest score; of equal scores the earlier
// block wins. ArkVale, Quest and SparseServe select so.
type TopK struct{ K int }

// Limit returns K.
func (p TopK) Limit() int { return p.K }

// Pick implements Policy in O(len(scores)).
func (p TopK) Pick(scores []float32, dst []uint16) []uint16 {
	dst = dst[:0]
	n := len(scores)
	if n <= p.K {
		for i := range n {
			dst = append(dst, uint16(i))
		}
		return dst
	}
	cut, ties := kthLargest(scores, p.K)
	for i, s := range scores {
		if s > cut {
			dst = append(dst, uint16(i))
		} else if s == cut && ties > 0 {
			ties--
			dst = append(dst, uint16(i))
		}
	}
	return dst
}

// kthLargest returns the k-th largest score and how many scores equal to it
// belong to the k largest. It keeps a min-heap of k scores: in a long context
// almost every score fails its first comparison.
func kthLargest(scores []float32, k int) (cut float32, ties int) {
	var store [256]float32
	h := store[:0]
	if k > len(store) {
		h = make([]float32, 0, k)
	}
	h = append(h, scores[:k]...)
	for i := k/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
	for _, s := range scores[k:] {
		if s > h[0] {
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
