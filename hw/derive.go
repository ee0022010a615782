package hw

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// derivedDigits is the number of significant digits of a derived figure, as in measured ones.
const derivedDigits = 4

// on returns the costs of the same kernels on another card. Each kind of cost has one rule:
//
//   - A rate scales with the figure that its `by` tag names: hbm, the bandwidth of HBM; peak, the
//     arithmetic peak; h2d or d2h, a direction of the link; cpu, the host. Launches and other
//     fixed times stay.
//   - Norms and similar kernels (pointwise): the time beyond one token's time, which is launches,
//     scales with HBM. It stays up to the most tokens whose bytes HBM could not have moved in that
//     time, because L2 serves them.
//   - Weight matrices need, beyond launches (linear_launch), the longer of their bytes and their
//     FLOPs, which measurements do not separate. The ratio is the mean of both cards' ratios,
//     weighted by the squares of the two floors on the measured card, so the binding one dominates.
//
// The figures of k are changed in place where its slices are shared.
func (k KernelCosts) on(from, to *Card) KernelCosts {
	hbm := to.GPU.HBMBandwidth.SI() / from.GPU.HBMBandwidth.SI()
	peak := to.GPU.PeakFP16.SI() / from.GPU.PeakFP16.SI()
	h2d := to.Link.H2D.SI() / from.Link.H2D.SI()
	d2h := to.Link.D2H.SI() / from.Link.D2H.SI()
	eachFigure(reflect.ValueOf(&k).Elem(), func(_ string, f *Figure, tag reflect.StructTag) {
		if !f.Set() {
			return
		}
		switch tag.Get("by") {
		case "hbm":
			f.scale(hbm, "HBM of "+to.Name)
		case "peak":
			f.scale(peak, "peak of "+to.Name)
		case "h2d":
			f.scale(h2d, "link of "+to.Name)
		case "d2h":
			f.scale(d2h, "link of "+to.Name)
		case "cpu":
			f.scale(to.CPU.Speed.SI()/from.CPU.Speed.SI(), "host of "+to.Name)
		}
	})
	k.elementwise(from, hbm, to.Name)
	k.matrices(from, hbm, peak, to.Name)
	k.grids(from, to)
	return k
}

// grids scales the times of grids beyond their shortest time, which is launches except in times per
// token: decode attention with HBM, all-reduces with the interconnect, prompts with the peak.
// Latent decodes and GEMMs scale with the mean of matrices, with the peak of their type.
func (k *KernelCosts) grids(from, to *Card) {
	hbm := to.GPU.HBMBandwidth.SI() / from.GPU.HBMBandwidth.SI()
	links := to.Interconnect.Nominal.Optional() / from.Interconnect.Nominal.Optional()
	for i := range k.Grids {
		g := &k.Grids[i]
		peak := to.GPU.PeakOf(g.Type) / from.GPU.PeakOf(g.Type)
		if hbm == 1 && peak == 1 && links == 1 {
			continue
		}
		launch := slices.Min(g.Times)
		if g.Kernel == GridSelectedPrefill {
			launch = 0
		}
		times, at := make([]float64, len(g.Times)), 0
		g.Each(func(sizes Sizes) {
			by := 1 / hbm
			mean := func(bytes, flops, fromPeak, peak float64) {
				bytes, flops = bytes/from.GPU.HBMBandwidth.SI(), flops/fromPeak
				share := bytes * bytes / (bytes*bytes + flops*flops)
				by = share/hbm + (1-share)/peak
			}
			wide := from.GPU.PeakFP16.SI()
			switch g.Kernel {
			case GridLatent: // DeepSeek-V3's latents, per token
				mean(576*2, sizes[2]*2*(576+512), wide, to.GPU.PeakFP16.SI()/wide)
			case GridSelected: // DeepSeek-V3.2's, padded to TileRows heads
				mean(576*2, math.Max(TileRows, sizes[3])*2*(576+512), wide, to.GPU.PeakFP16.SI()/wide)
			case GridPrefill, GridLatentPrefill, GridSelectedPrefill:
				by = wide / to.GPU.PeakFP16.SI()
			case GridAllReduce:
				if by = 1; links > 0 {
					by = 1 / links
				}
			case GridGEMM, GridRagged:
				w := sizes[1] * sizes[2]
				mean(WeightBytes(g.Type)*w, 2*w*sizes[0], from.GPU.PeakOf(g.Type), peak)
			case GridExpert:
				mean(WeightBytes(g.Type)*sizes[1], 2*sizes[1]*sizes[0], from.GPU.PeakOf(g.Type), peak)
			}
			times[at] = stats.Significant(launch+(g.Times[at]-launch)*by, derivedDigits)
			at++
		})
		g.Times, g.From = times, Derived
		g.Source = fmt.Sprintf("%s, scaled to HBM, peak and links of %s", g.Source, to.Name)
	}
}

// elementwise scales rows of norms and similar kernels, except rows up to the most tokens of a
// shape whose bytes HBM could not have moved in that time.
func (k *KernelCosts) elementwise(from *Card, hbm float64, name string) {
	launches, fed := map[string]float64{}, map[string]int{}
	for i := range k.Pointwise {
		r := &k.Pointwise[i]
		if _, ok := launches[r.Shape]; !ok {
			launches[r.Shape] = r.SI()
		}
		m := k.ShapeOf(r.Shape).Model()
		least := float64(r.Tokens) * m.PointwiseBytes() / from.GPU.HBMBandwidth.SI()
		if r.SI()-launches[r.Shape] < least {
			fed[r.Shape] = r.Tokens
		}
	}
	last := map[string]float64{} // more tokens never take less time, however fast HBM is
	for i := range k.Pointwise {
		r := &k.Pointwise[i]
		if launch := launches[r.Shape]; hbm != 1 && r.Tokens > fed[r.Shape] {
			t := launch + (r.SI()-launch)/hbm
			r.scale(math.Max(t, last[r.Shape])/r.SI(), "HBM of "+name)
		}
		last[r.Shape] = r.SI()
	}
}

// matrices scales rows of weight matrices.
func (k *KernelCosts) matrices(from *Card, hbm, peak float64, name string) {
	if hbm == 1 && peak == 1 {
		return
	}
	for i := range k.Linears {
		r := &k.Linears[i]
		w := float64(k.ShapeOf(r.Shape).Linears())
		bytes := 2 * w / from.GPU.HBMBandwidth.SI()
		flops := 2 * w * float64(r.Tokens) / from.GPU.PeakFP16.SI()
		share := bytes * bytes / (bytes*bytes + flops*flops)
		launch := math.Min(k.LinearLaunch.Optional(), r.SI())
		r.scale((launch+(r.SI()-launch)*(share/hbm+(1-share)/peak))/r.SI(), "HBM and peak of "+name)
	}
}

// TileRows is the least number of rows that the tensor cores multiply at once (wgmma, M = 64).
// FlashMLA pads fewer heads to this number.
const TileRows = 64

// Derivation says how far a card is from the one on which its kernels were measured; empty: it is
// the same chip.
type Derivation string

// derivations maps each Derivation to the error that deriving had where it could be checked: the
// largest medians of docs/cost-model.md, which a test compares, and published ratios of an MI300X
// to an H200 under vLLM 0.26 (alpharomercoma/MI300X-vs-H200, REPORT.md, commit 6077fdc7) over those
// of peak (1.32) and HBM (1.10): prompts 2.06 x 1.32, experts 2.72 x 1.10, decodes 1.02 x 1.10.
var derivations = map[Derivation]string{
	"generation": "of the same generation: the median error of a kernel, where it could be checked " +
		"(H100 from H200), is up to 10 % in 16 bits and 30 % in FP8",
	"generations": "of another generation: the median error of a kernel, where it could be checked " +
		"(B200 from H200, L40S from A100), is up to 50 % in 16 bits and 50 % in FP8",
	"architecture": "of another architecture: where it could be checked (MI300X from H200), decodes " +
		"took 1.1 times as long as derived, prompts up to 2.7 times, experts up to 3 times",
}

// OtherVendor reports whether a card's kernels were derived from another vendor's cards.
func (d Derivation) OtherVendor() bool { return d == "architecture" }

// Doubt says how far off kernels are that were derived so.
func (d Derivation) Doubt() string { return derivations[d] }

// Doubts returns a warning if the kernels of an engine were measured on another chip than the card
// that gpu names. Both are names or files of which Load made a machine.
func Doubts(gpu, engine string) []warn.Warning {
	c, err := LoadCard(gpu)
	e, err2 := LoadEngine(engine)
	if err != nil || err2 != nil || c.Derived == "" {
		return nil
	}
	k, derived, err := c.KernelsOf(e.Kernels, gpu)
	if err != nil || !derived {
		return nil
	}
	return []warn.Warning{warn.New(warn.DerivedCard, "kernels of %s are derived, not measured: from "+
		"%s, %s", c.Name, k.MeasuredOn, c.Derived.Doubt()).About(c.Name)}
}
