package cost

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
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
	noteExpertRows           // no figures of experts of their weights' type
	noteNarrow               // no figures of weights of fewer than 16 bits
	noteSwap                 // no figures of hot buffers' kernel
	noteDrafts               // no figures of speculation
	noteInterconnect         // no figure of the link between GPUs
	noteCount
)

// notes records which cost models were asked beyond their data, and how far.
type notes struct {
	bits  uint32              // of the current step
	asked *[noteCount]float64 // most extreme value asked, over all steps
	costs [noteCount]costNote
}

// costNote is the cost model that a note concerns, and what it assumes. From noteLinears to
// noteScatter the text has a format for the value asked.
type costNote struct{ kernel, text string }

func newNotes(p *hw.Profile, m *llm.Model, c *coster) *notes {
	note := func(kernel, format string, args ...any) costNote {
		return costNote{kernel, fmt.Sprintf(format, args...)}
	}
	linears, pointwise, flash, scatter := c.linears.measured, c.pointwise.measured, p.Load.Flash,
		p.Save.Scatter
	return &notes{asked: new([noteCount]float64), costs: [noteCount]costNote{
		noteShape: note("linears", "no measured points for %s on %s; scaled from the mean of measured "+
			"models by weights per layer", m.Name, p.Name),
		noteLinears: note("linears", "asked for %%.0f tokens, measured %.0f to %.0f on %s; continued at "+
			"constant rate", linears.x[0], linears.last(), p.Name),
		notePointwise: note("norms, rope, activation", "asked for %%.0f tokens, measured %.0f to %.0f "+
			"on %s; continued at constant rate", pointwise.x[0], pointwise.last(), p.Name),
		notePrefill: note("prefill attention", "asked for chunks of %%.0f tokens, measured from %.0f "+
			"on %s; rate held", c.prefill.rate.x[0], p.Name),
		notePool: note("FlashH2D", "asked for a host pool of %%.1f GiB, measured to %.3g GiB on %s; "+
			"rate held", flash[len(flash)-1].PoolGiB, p.Name),
		noteScatter: note("FlashD2H", "asked for %%.0f scatter threads, measured %d to %d on %s",
			scatter[0].Threads, scatter[len(scatter)-1].Threads, p.Name),
		notePSA: note("progressive attention", "no measured points on %s; priced as block-sparse "+
			"decode of the same tokens", p.Name),
		noteSparsePrefill: note("sparse prefill", "no kernels measured on %s; priced at the shares of "+
			"dense attention and of HBM that MInference's own reach on an A100", p.Name),
		noteLatent: note("latent attention", "no kernel measured on %s; priced by bytes at the rate of "+
			"other decode attention, by FLOPs at that of prefill attention", p.Name),
		noteIndexer: note("indexer", "no kernel measured on %s; priced by bytes at the rate of scoring "+
			"blocks, by FLOPs at prefill attention's share of the FP8 peak", p.Name),
		noteExperts: note("experts", "no kernel measured on %s; priced as linears of their size, with "+
			"every expert equally likely", p.Name),
		noteExpertRows: note("experts", "no kernel with weights of their type measured on %s; priced "+
			"by the nearest type, less the bytes of the weights", p.Name),
		noteNarrow: note("weights of fewer than 16 bits", "no such linears measured on %s; scaled from "+
			"16-bit linears by bytes and peak", p.Name),
		noteSwap: note("hot buffers", "no kernel measured on %s; priced as FlashH2D of single rows, "+
			"with no time to walk the buffers", p.Name),
		noteDrafts: note("speculation", "no MTP layer measured on %s; priced as a layer, a linear and "+
			"the LM head, attention of a request's queries as one that reads its KV once", p.Name),
		noteInterconnect: note("all-reduces", "card %s has no interconnect.nominal; its GPUs share "+
			"layers over the host's link, %.4g GB/s", p.Name, p.Link.Nominal.SI()*1e-9),
	}}
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
	for bit, c := range n.costs {
		kind, text := warn.Assumed, c.text
		if bit >= noteLinears && bit <= noteScatter { // asked beyond data
			kind, text = warn.Extrapolated, fmt.Sprintf(text, n.asked[bit])
		}
		if bits&(1<<bit) != 0 {
			out = append(out, warn.New(kind, "%s: %s", c.kernel, text).About(c.kernel))
		}
	}
	return out
}
