package dsa

import "math"

// FullName names full attention among the algorithms: what the others leave out is measured
// against it. A server that runs it needs no scores and no lists.
const FullName = "full"

// Full attends to every block.
type Full struct{}

// Limit implements Policy: however many candidates there are, all are picked.
func (Full) Limit() int { return math.MaxInt - 1 }

// AtOnce implements Policy.
func (Full) AtOnce(candidates int) int { return candidates }

// Weighs implements Policy.
func (Full) Weighs() bool { return false }

// Picker implements Policy.
func (p Full) Picker() Picker { return p }

// Pick implements Picker.
func (Full) Pick(v *View, dst []uint16) ([]uint16, int) {
	dst = dst[:0]
	for b := range v.Critical {
		dst = append(dst, uint16(b))
	}
	return dst, len(dst)
}
