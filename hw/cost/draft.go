package cost

import (
	"errors"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// Draft implements sim.Drafter. An MTP layer costs as much as the model's last layer with this
// work, plus its projection and the LM head on the given rows.
//
//	t = gemm(2 h x h, tokens) + layer + head(rows)
//
// Its kernels are launched like a layer's: in CUDA graphs or one by one.
func (d *Device) Draft(w *sim.Work, rows int) error {
	if !d.running {
		return errors.New("hw: Draft outside a step")
	}
	d.costs.notes.mark(noteDrafts, true, 0)
	project, _ := d.project.of(float64(w.Tokens))
	d.compute(nanoseconds(project), &d.phases.Linears)
	last := d.model.Layers - 1
	if w.Sparse {
		if err := d.Score(last, w); err != nil {
			return err
		}
	}
	if err := d.Compute(last, w); err != nil {
		return err
	}
	d.compute(nanoseconds(d.costs.head.seconds(w.Tokens, rows)), &d.phases.Head)
	d.compute(d.reduce.of(d.hidden(w.Tokens))+d.reduce.of(float64(rows*d.model.Logits())),
		&d.phases.AllReduce)
	return nil
}

// newProjection prices the linear before an MTP layer. Its launch is a quarter of a layer's four.
func newProjection(p *hw.Profile, m *llm.Model) gemm {
	l := newGEMMOf(p, m, []llm.Matrix{{Rows: 2 * m.Hidden, Columns: m.Hidden}}, m.WeightBytesEach)
	l.launch = l.launches / 4
	return l
}
