package hw

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Interconnect joins the GPUs of one host.
type Interconnect struct {
	// all links of a GPU together, one direction
	Nominal Figure `toml:"nominal,omitempty" dim:"rate,optional"`
	// built-in card whose all_reduce holds here, its part that grows with bytes by the nominal
	// rates
	MeasuredOn string         `toml:"measured_on,omitempty"`
	AllReduce  []AllReduceRow `toml:"all_reduce"`
}

// AllReduceRow is the time of an all-reduce between two GPUs.
type AllReduceRow struct {
	Bytes  int `toml:"bytes"`
	Figure `dim:"time"`
}

func (ic *Interconnect) validate() error {
	for i, r := range ic.AllReduce {
		if r.Bytes < 1 || i > 0 && r.Bytes <= ic.AllReduce[i-1].Bytes {
			return wrong(fmt.Sprintf("interconnect.all_reduce[%d].bytes", i), "want sizes that rise")
		}
	}
	if (len(ic.AllReduce) > 0 || ic.MeasuredOn != "") && !ic.Nominal.Set() {
		return wrong("interconnect.nominal", "want it with all_reduce")
	}
	return nil
}

// resolved returns the interconnect with rows of its own.
func (ic Interconnect) resolved() (Interconnect, error) {
	if ic.MeasuredOn == "" {
		return ic, nil
	}
	from, err := LoadCard(ic.MeasuredOn)
	if err != nil {
		return ic, fmt.Errorf("interconnect.measured_on: %w", err)
	}
	ic.MeasuredOn = ""
	by := from.Interconnect.Nominal.SI() / ic.Nominal.SI()
	first := from.Interconnect.AllReduce[0].SI()
	for _, r := range from.Interconnect.AllReduce {
		r.scale((first+(r.SI()-first)*by)/r.SI(), "links of another speed")
		ic.AllReduce = append(ic.AllReduce, r)
	}
	return ic, nil
}

// allReduce is the cost of an all-reduce of B bytes between n GPUs:
//
//	t(n, B) = log2(n) t2(0) + t2(f B) - t2(0), at least f B / nominal, f = 2 (n-1) / n
//
// t2 is the time between two GPUs, measured: each sends and receives B bytes. A ring of n sends
// f B; its latency is assumed to grow as a tree's.
type allReduce struct {
	factor  float64 // f
	latency float64 // seconds, beyond t2
	nominal float64 // bytes/s
	two     curve   // bytes, seconds
}

// newAllReduce returns nil where one GPU has the model.
func newAllReduce(p *Profile, m *Model) (*allReduce, error) {
	n := float64(m.ranks())
	if n == 1 {
		return nil, nil
	}
	if len(p.Interconnect.AllReduce) == 0 {
		return nil, fmt.Errorf("card %s has no interconnect.all_reduce, which tensor parallelism needs",
			p.Name)
	}
	a := &allReduce{factor: 2 * (n - 1) / n, nominal: p.Interconnect.Nominal.SI()}
	for _, r := range p.Interconnect.AllReduce {
		a.two.add(float64(r.Bytes), r.SI())
	}
	a.latency = (math.Log2(n) - 1) * a.two.y[0]
	return a, nil
}

// of returns the time of an all-reduce of bytes.
func (a *allReduce) of(bytes float64) des.Time {
	if a == nil || bytes == 0 {
		return 0
	}
	t, _ := a.two.cost(a.factor * bytes)
	return nanoseconds(math.Max(a.latency+t, a.factor*bytes/a.nominal))
}
