package hw

import (
	"fmt"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// Bits of Timing.Extrapolated.
const (
	noteShape         = iota // model's shape has no measured linears
	noteLinears              // more tokens than measured
	notePointwise            // more tokens than measured
	notePrefill              // shorter chunks than measured
	notePool                 // larger host pool than measured
	noteScatter              // scatter threads not measured
	notePSA                  // no figures of progressive attention
	noteSparsePrefill        // no figures of sparse prefill
	noteLatent               // no figures of attention over latents
	noteIndexer              // no figures of an indexer
	noteExperts              // no figures of experts
	noteNarrow               // no figures of weights of fewer than 16 bits
	noteSwap                 // no figures of hot buffers' kernel
	noteDrafts               // no figures of speculation
	noteInterconnect         // no figure of the link between GPUs
	noteCount
)

// noteKernels maps each note to the cost model that it concerns.
var noteKernels = [noteCount]string{
	noteShape:         "linears",
	noteLinears:       "linears",
	notePointwise:     "norms, rope, activation",
	notePrefill:       "prefill attention",
	notePool:          "FlashH2D",
	noteScatter:       "FlashD2H",
	notePSA:           "progressive attention",
	noteSparsePrefill: "sparse prefill",
	noteLatent:        "latent attention",
	noteIndexer:       "indexer",
	noteExperts:       "experts",
	noteNarrow:        "weights of fewer than 16 bits",
	noteSwap:          "hot buffers",
	noteDrafts:        "speculation",
	noteInterconnect:  "all-reduces",
}

// notes records which cost models were asked beyond their data, and how far.
type notes struct {
	bits  uint32              // of the current step
	asked *[noteCount]float64 // most extreme value asked, over all steps
	text  [noteCount]string   // a format for asked
}

func newNotes(p *Profile, m *Model, c *coster) *notes {
	n := &notes{asked: new([noteCount]float64)}
	n.text[noteLatent] = fmt.Sprintf("no kernel measured on %s; priced by bytes "+
		"at the rate of other decode attention, by FLOPs at that of prefill attention", p.Name)
	n.text[noteIndexer] = fmt.Sprintf("no kernel measured on %s; priced by bytes at the "+
		"rate of scoring blocks, by FLOPs at prefill attention's share of the FP8 peak", p.Name)
	n.text[noteExperts] = fmt.Sprintf("no kernel measured on %s; priced as linears of their "+
		"size, with every expert equally likely", p.Name)
	n.text[noteNarrow] = fmt.Sprintf("no such linears measured on "+
		"%s; scaled from 16-bit linears by bytes and peak", p.Name)
	n.text[noteShape] = fmt.Sprintf(
		"no measured points for %s on %s; scaled from the mean of measured models by weights per layer",
		m.Name, p.Name)
	n.text[noteLinears] = fmt.Sprintf(
		"asked for %%.0f tokens, measured %.0f to %.0f on %s; continued at constant rate",
		c.linears.measured.x[0], c.linears.measured.last(), p.Name)
	n.text[notePointwise] = fmt.Sprintf(
		"asked for %%.0f tokens, measured %.0f to %.0f on %s; continued at "+
			"constant rate",
		c.pointwise.measured.x[0], c.pointwise.measured.last(), p.Name)
	n.text[notePrefill] = fmt.Sprintf(
		"asked for chunks of %%.0f tokens, measured from %.0f on %s; rate held",
		c.prefill.rate.x[0], p.Name)
	n.text[notePool] = fmt.Sprintf(
		"asked for a host pool of %%.1f GiB, measured to %.3g GiB on %s; rate held",
		p.Load.Flash[len(p.Load.Flash)-1].PoolGiB, p.Name)
	n.text[noteScatter] =
		fmt.Sprintf("asked for %%.0f scatter threads, measured %d to %d on %s",
			p.Save.Scatter[0].Threads, p.Save.Scatter[len(p.Save.Scatter)-1].Threads, p.Name)
	n.text[notePSA] = fmt.Sprintf("no measured points on %s; priced as "+
		"block-sparse decode of the same tokens", p.Name)
	n.text[noteSparsePrefill] = fmt.Sprintf("no kernels measured on %s; priced at "+
		"the shares of dense attention and of HBM that MInference's own reach on an A100", p.Name)
	n.text[noteSwap] = fmt.Sprintf("no kernel measured on %s; priced as FlashH2D of "+
		"single rows, with no time to walk the buffers", p.Name)
	n.text[noteDrafts] = fmt.Sprintf("no MTP layer measured on %s; priced as a layer, "+
		"a linear and the LM head, attention of a request's queries as one that reads its KV once",
		p.Name)
	n.text[noteInterconnect] = fmt.Sprintf("card %s has no interconnect.nominal; its GPUs share "+
		"layers over the host's link, %.4g GB/s", p.Name, p.Link.Nominal.SI()*1e-9)
	return n
}

// mark sets a bit if on, and keeps the most extreme value asked: the shortest for prefill chunks,
// the largest otherwise.
func (n *notes) mark(bit int, on bool, asked float64) {
	if !on {
		return
	}
	n.bits |= 1 << bit
	if bit == notePrefill && n.asked[bit] > 0 {
		n.asked[bit] = min(n.asked[bit], asked)
		return
	}
	n.asked[bit] = max(n.asked[bit], asked)
}

// ShareNotes makes two devices of one profile and model, which alternate, share their most extreme
// values.
func (d *Device) ShareNotes(o *Device) { d.costs.notes.asked = o.costs.notes.asked }

// ExtrapolationNotes explains the bits of Timing.Extrapolated: the most extreme value asked of this
// device and of the devices that share its notes, and the measured limit.
func (d *Device) ExtrapolationNotes(bits uint32) []warn.Warning {
	n := d.costs.notes
	var out []warn.Warning
	for bit := range noteCount {
		switch {
		case bits&(1<<bit) == 0:
		case bit == noteShape || bit == notePSA || bit >= noteSparsePrefill:
			out = append(out, warn.New(warn.Assumed, "%s: %s", noteKernels[bit],
				n.text[bit]).About(noteKernels[bit]))
		default:
			out = append(out, warn.New(warn.Extrapolated, "%s: %s", noteKernels[bit],
				fmt.Sprintf(n.text[bit], n.asked[bit])).About(noteKernels[bit]))
		}
	}
	return out
}
