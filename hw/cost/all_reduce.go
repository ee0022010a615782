package cost

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/des"
)

// allReduce is the cost of an all-reduce of B bytes between n GPUs, measured between n GPUs, or
// else between m, the most measured GPUs below n:
//
//	t(n, B) = t_m(B f_n / f_m), at least B f_n / nominal,  f_n = 2 (n-1) / n
//
// because each GPU of a ring sends f_n B.
type allReduce struct {
	at      *lattice // of GPUs and bytes
	gpus    float64  // m
	factor  float64  // f_n
	more    float64  // f_n / f_m
	nominal float64  // bytes/s
}

// newAllReduce returns nil if one GPU has the model.
func newAllReduce(p *hw.Profile, m *llm.Model) (*allReduce, error) {
	n := m.GPUs()
	if n == 1 {
		return nil, nil
	}
	g := p.GridOf(hw.GridAllReduce, "bf16")
	if g == nil || g.Axes[0].At[0] > float64(n) {
		return nil, fmt.Errorf("the kernels of card %s have no all-reduce of %d GPUs or fewer "+
			"(grids, kernel = \"all_reduce\"), which tensor parallelism needs", p.Name, n)
	}
	nominal := p.Interconnect.Nominal
	if !nominal.Set() {
		nominal = p.Link.Nominal // GPUs without another link share PCIe; a note says so
	}
	a := &allReduce{at: newLattice(g), factor: ring(float64(n)), nominal: nominal.SI()}
	for _, measured := range g.Axes[0].At {
		if measured <= float64(n) {
			a.gpus = measured
		}
	}
	a.more = a.factor / ring(a.gpus)
	return a, nil
}

// CheckParallel returns an error if n GPUs of the card cannot share a model's layers.
func CheckParallel(p *hw.Profile, n int) error {
	_, err := newAllReduce(p, &llm.Model{Ranks: n})
	return err
}

// ring returns the bytes that each of n GPUs sends in a ring, as a multiple of the bytes reduced.
func ring(n float64) float64 { return 2 * (n - 1) / n }

// of returns the time of an all-reduce of the given bytes.
func (a *allReduce) of(bytes float64) des.Time {
	if a == nil || bytes == 0 {
		return 0
	}
	t, _ := a.at.seconds(hw.Sizes{a.gpus, a.more * bytes})
	return nanoseconds(math.Max(t, a.factor*bytes/a.nominal))
}
