package dsa

import "math/bits"

// Union lets each query head of a KV head pick its own K highest estimates. The KV head attends
// to every block that at least one query head picked, in ascending order.
type Union struct{ K, Queries int }

// Limit returns K.
func (p Union) Limit() int { return p.K }

// AtOnce implements Policy: the picks of the query heads may be disjoint.
func (p Union) AtOnce(candidates int) int { return min(p.K*p.Queries, candidates) }

// Weighs returns false: the estimates suffice.
func (p Union) Weighs() bool { return false }

// Picker implements Policy.
func (p Union) Picker() Picker {
	u := &union{heads: make([]topK, p.Queries)}
	for q := range u.heads {
		u.heads[q].k = p.K
	}
	return u
}

type union struct {
	heads []topK
	own   []uint16 // picks of one query head
	in    []uint64 // union of the picks, one bit per candidate; zero between steps
}

// Pick implements Picker.
func (u *union) Pick(v *View, dst []uint16) ([]uint16, int) {
	for len(u.in)*64 < len(v.Critical) {
		u.in = append(u.in, 0)
	}
	for q := range u.heads {
		u.own = u.heads[q].pick(v.Each[q], u.own[:0])
		for _, b := range u.own {
			u.in[b/64] |= 1 << (b % 64)
		}
	}
	dst = dst[:0]
	for i, set := range u.in {
		for ; set != 0; set &= set - 1 {
			dst = append(dst, uint16(i*64+bits.TrailingZeros64(set)))
		}
		u.in[i] = 0
	}
	return dst, len(dst)
}
