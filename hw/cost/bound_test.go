package cost

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// Under a modern engine no decode step of 8 or more requests lasts more than twice what its
// bytes need at the card's peak, and no prefill of 8k tokens more than twice its FLOPs, or up to
// 3.6 times where kernels are known to be slower: on every card and with every model that fits it.
func TestModernEngineIsNearItsBound(t *testing.T) {
	tried := 0
	for _, gpu := range hw.CardNames() {
		p, err := hw.Load(gpu, "vllm-0.15", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range classModels {
			m := mustModel(t, name)
			plan, err := p.KVBudget(m, 0.9, 8192, 256)
			if err != nil {
				continue
			}
			most := 2.
			switch {
			case p.GPU.PeakFP4.Set() && m.IsMixture(): // experts reach a quarter of a B200's peak
				most = 3.6
			case m.IsMixture(): // grouped GEMMs reach two fifths of an A100's peak at best
				most = 2.7
			case gpu == "l40s" || strings.HasPrefix(gpu, "rtx-"): // GEMMs reach half of an L40S's peak
				most = 2.3
			case gpu == "h20": // of its bound: bytes of KV bind there, FLOPs of linears do, one by one
				most = 2.1
			}
			for _, batch := range []int{8, 16, 32, 64, 128} {
				for _, context := range []int{512, 2048, 8192, 32768} {
					if context > m.MaxContext || int64(batch*context)*m.KVBytesPerToken() > plan.KV {
						continue
					}
					tried++
					took, err := DecodeIteration(p, m, context, batch)
					if err != nil {
						t.Fatal(err)
					}
					bytes := float64(m.WeightBytes()) + float64(batch*context)*float64(m.KVBytesPerToken())
					flops := 2*float64(m.WeightBytes()/int64(m.WeightBytesEach))*float64(batch) +
						4*float64(m.QHeads*m.HeadDim*m.Layers)*float64(batch*context)
					if bound := peakOf(p).floor(flops, bytes); took.Seconds() > most*bound {
						t.Errorf("%s, %s: %d decodes of %d tokens take %v, %.2f times their bound", gpu, name, batch,
							context, took, took.Seconds()/bound)
					}
				}
			}
			const prompt = 8192
			if prompt > m.MaxContext {
				continue
			}
			tried++
			d, err := NewDevice(p, m, DeviceOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w := sim.Work{Tokens: prompt, Prefill: []sim.Span{{Query: prompt}}}
			if err := d.Begin(&sim.Step{Requests: 1, Sampled: 1}); err != nil {
				t.Fatal(err)
			}
			for layer := range m.Layers {
				if err := d.Compute(layer, &w); err != nil {
					t.Fatal(err)
				}
			}
			timing, err := d.Finish()
			if err != nil {
				t.Fatal(err)
			}
			flops := 2*float64(m.ActiveWeights()-int64(m.Vocab*m.Hidden))*prompt +
				float64(m.Layers)*PrefillFLOPs(m, w.Prefill[0])
			bound := peakOf(p).floor(flops, float64(m.WeightBytes()))
			if timing.Elapsed.Seconds() > most*bound {
				t.Errorf("%s, %s: a prefill of %d tokens takes %v, %.2f times its bound", gpu, name, prompt,
					timing.Elapsed, timing.Elapsed.Seconds()/bound)
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d cases fit a card", tried)
	}
}
