package hw

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
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
	links := to.Interconnect.Nominal.optional() / from.Interconnect.Nominal.optional()
	for i := range k.Grids {
		g := &k.Grids[i]
		peak := to.PeakOf(g.Type) / from.PeakOf(g.Type)
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
			case GridSelected: // DeepSeek-V3.2's, padded to tileRows heads
				mean(576*2, math.Max(tileRows, sizes[3])*2*(576+512), wide, to.GPU.PeakFP16.SI()/wide)
			case GridPrefill, GridLatentPrefill, GridSelectedPrefill:
				by = wide / to.GPU.PeakFP16.SI()
			case GridAllReduce:
				if by = 1; links > 0 {
					by = 1 / links
				}
			case GridGEMM, GridRagged:
				w := sizes[1] * sizes[2]
				mean(WeightBytes(g.Type)*w, 2*w*sizes[0], from.PeakOf(g.Type), peak)
			case GridExpert:
				mean(WeightBytes(g.Type)*sizes[1], 2*sizes[1]*sizes[0], from.PeakOf(g.Type), peak)
			}
			times[at] = significant(launch+(g.Times[at]-launch)*by, derivedDigits)
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
		m := k.shape(r.Shape).model()
		least := float64(r.Tokens) * PointwiseBytes(&m) / from.GPU.HBMBandwidth.SI()
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
		w := float64(k.shape(r.Shape).linears())
		bytes := 2 * w / from.GPU.HBMBandwidth.SI()
		flops := 2 * w * float64(r.Tokens) / from.GPU.PeakFP16.SI()
		share := bytes * bytes / (bytes*bytes + flops*flops)
		launch := math.Min(k.LinearLaunch.optional(), r.SI())
		r.scale((launch+(r.SI()-launch)*(share/hbm+(1-share)/peak))/r.SI(), "HBM and peak of "+name)
	}
}

// significant rounds to the given number of significant digits.
func significant(x float64, digits int) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		panic(err) // ParseFloat reads every output of FormatFloat
	}
	return y
}
