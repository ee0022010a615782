package calibrate

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"path/filepath"

	"github.com/google/renameio/v2"

	"sparseserve/hw"
	"sparseserve/sim"
	"sparseserve/sim/kv"
)

// curve is one system of a paper's figure: measured here, or modelled on the
// card that the paper used.
type paperCurve struct {
	name string
	x, y []float64
}

// paperFigure is one figure of the SparseServe paper, drawn anew.
type paperFigure struct {
	file, title, xLabel, yLabel string
	bars                        bool // x are groups, not a scale
	groups                      []string
	curves                      []paperCurve
}

// paperCard is the card of the paper's figures.
const paperCard = "a100-40gb"

// drawPaper draws Figs. 4a, 4b, 14b and 16b from the samples, beside the
// modelled card of the paper, each with its numbers as CSV.
func (c *Calibration) drawPaper(dir string) error {
	a100, err := hw.Load(paperCard, "vllm-0.5", nil)
	if err != nil {
		return err
	}
	model, err := shapeModel(shapes[0])
	if err != nil {
		return err
	}
	for _, f := range []paperFigure{c.fig4(a100, "a"), c.fig4(a100, "b"), c.fig14b(a100, model), c.fig16b(a100, model)} {
		if len(f.curves) == 0 || len(f.curves[0].x) == 0 {
			continue // not in this plan
		}
		png, err := f.render()
		if err != nil {
			return err
		}
		for name, data := range map[string][]byte{f.file + ".png": png, f.file + ".csv": f.table()} {
			if err := renameio.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// fig4 is the bandwidth of moving many blocks, by their size in tokens of one
// KV head of one layer (512 bytes a token).
func (c *Calibration) fig4(a100 *hw.Profile, part string) paperFigure {
	f := paperFigure{file: "fig4" + part, xLabel: "tokens a block", yLabel: "GB/s"}
	type engine struct {
		name, probe string
		price       func(blockBytes, n int64) float64
	}
	var engines []engine
	if part == "a" {
		f.title = "KV loading bandwidth by block size (Fig. 4a)"
		engines = []engine{
			{"memcpy", probeLoadMemcpy, func(b, n int64) float64 { return priceLoad(a100, hw.LoadMemcpy, n, b, basePool) }},
			{"FlashH2D", probeLoadFlash, func(b, n int64) float64 { return priceLoad(a100, hw.LoadFlash, n, b, basePool) }},
		}
	} else {
		f.title = "KV saving bandwidth by block size (Fig. 4b)"
		engines = []engine{
			{"memcpy", probeSaveMemcpy, func(b, n int64) float64 { return priceSave(a100, hw.SaveMemcpy, n, b, basePool, 0) }},
			{"FlashD2H", probeSaveFlash, func(b, n int64) float64 { return priceSave(a100, hw.SaveFlash, n, b, basePool, 0) }},
		}
	}
	for _, e := range engines {
		all := c.Samples.of(e.probe).where(func(at datum) bool {
			b := at.At("block_bytes")
			return b >= 2*kib && b <= 16*kib && c.typical(at)
		})
		most := all.values("blocks")
		if len(most) == 0 {
			continue
		}
		n := most[len(most)-1]
		measured := paperCurve{name: c.card() + " " + e.name + ", measured"}
		modelled := paperCurve{name: "A100 " + e.name + ", modelled"}
		for _, at := range all.where(func(at datum) bool { return at.At("blocks") == n }) {
			tokens := float64(at.At("block_bytes")) / 512
			measured.x, measured.y = append(measured.x, tokens), append(measured.y, moved(at)/at.seconds*1e-9)
			modelled.x, modelled.y = append(modelled.x, tokens), append(modelled.y, moved(at)/e.price(at.At("block_bytes"), n)*1e-9)
		}
		f.curves = append(f.curves, measured, modelled)
	}
	return f
}

// typical says whether a transfer is at the base pool, with the threads that
// the profile takes.
func (c *Calibration) typical(at datum) bool {
	return at.At("pool_mib") == basePool && (at.Probe != probeSaveFlash || at.At("threads") == int64(c.Profile.Save.Threads.SI()))
}

func (c *Calibration) card() string {
	name := []byte(c.Profile.Name)
	return string(bytes.ToUpper(name))
}

// fig14b is prefill with saves beside it over prefill alone, summed over the
// chunks of one prompt.
func (c *Calibration) fig14b(a100 *hw.Profile, m *hw.Model) paperFigure {
	f := paperFigure{file: "fig14b", title: "prefill with KV saves beside it, over prefill alone (Fig. 14b)", yLabel: "latency over prefill alone", bars: true}
	alone := c.Samples.of(probeLayersNone).where(func(at datum) bool { return at.At("layers") == layersTimed }) // no layer segment
	if len(alone) == 0 {
		return f
	}
	sum := func(d data) float64 {
		t := 0.0
		for _, at := range d {
			t += at.seconds
		}
		return t
	}
	measured, modelled := paperCurve{name: c.card() + ", measured"}, paperCurve{name: "A100, modelled"}
	for i, e := range []struct{ name, probe, engine string }{
		{"memcpy", probeLayersMemcpy, hw.SaveMemcpy}, {"GPU-direct", probeLayersGPU, hw.SaveGPU}, {"FlashD2H", probeLayersFlash, hw.SaveFlash},
	} {
		beside := c.Samples.of(e.probe)
		if len(beside) != len(alone) {
			continue
		}
		f.groups = append(f.groups, e.name)
		measured.x, measured.y = append(measured.x, float64(i)), append(measured.y, sum(beside)/sum(alone))
		modelled.x = append(modelled.x, float64(i))
		modelled.y = append(modelled.y, prefillSeconds(a100, m, alone, e.engine)/prefillSeconds(a100, m, alone, ""))
	}
	f.curves = []paperCurve{measured, modelled}
	return f
}

// prefillSeconds prices the chunks on a modelled device, each until it is
// computed and saved.
func prefillSeconds(p *hw.Profile, m *hw.Model, chunks data, engine string) float64 {
	total := 0.0
	for _, at := range chunks {
		d, err := hw.NewDevice(p, m, hw.DeviceOptions{SaveEngine: engine, SaveBufferBytes: 1 << 40})
		must(err)
		chunk, prefix := int(at.At("chunk_tokens")), int(at.At("prefix_tokens"))
		work := sim.Work{Tokens: chunk, Prefill: []sim.Span{{Query: chunk, Prefix: prefix}}}
		must(d.Begin(&sim.Step{}))
		for layer := range int(at.At("layers")) {
			if engine != "" {
				g := m.Geometry(blockTokens)
				must(d.Move(&kv.Moves{Layer: layer, Saves: int64(chunk / blockTokens * m.KVHeads), BlockBytes: g.BlockBytes}))
			}
			must(d.Compute(layer, &work))
		}
		timing, err := d.Finish()
		must(err)
		total += max(timing.Elapsed, timing.SavesDone).Seconds() - p.Host.Step.SI()
	}
	return total
}

// fig16b is the attention of one layer for a prompt, over that of plain prefill: of
// the whole prompt at once as layer-segmented prefill computes it, and chunk after
// chunk, each after the prefix that the earlier ones left in KV blocks.
func (c *Calibration) fig16b(a100 *hw.Profile, m *hw.Model) paperFigure {
	f := paperFigure{file: "fig16b", yLabel: "attention time over plain prefill", bars: true}
	all := c.Samples.of(probeChunked)
	prompts := all.values("prompt_tokens")
	if len(prompts) == 0 {
		return f
	}
	prompt := prompts[len(prompts)-1]
	f.title = fmt.Sprintf("prefill attention of a %d token prompt in one layer (Fig. 16b)", prompt)
	all = all.where(func(at datum) bool { return at.At("prompt_tokens") == prompt })
	plain := c.Samples.of(probePrefill).where(func(at datum) bool {
		return at.Shape == all[0].Shape && at.At("query_tokens") == prompt && at.At("prefix_tokens") == 0
	})
	if len(plain) != 1 {
		return f
	}
	modelled := func(chunk int64) float64 {
		t := 0.0
		for _, s := range chunks(prompt, chunk) {
			t += a100.PrefillSeconds(m, s)
		}
		return t
	}
	measured, model := paperCurve{name: c.card() + ", measured"}, paperCurve{name: "A100, modelled"}
	for i, at := range all {
		chunk := at.At("chunk_tokens")
		f.groups = append(f.groups, fmt.Sprintf("chunks of %d", chunk))
		if chunk == prompt {
			f.groups[i] = "layer-segmented"
		}
		measured.x, measured.y = append(measured.x, float64(i)), append(measured.y, at.seconds/plain[0].seconds)
		model.x, model.y = append(model.x, float64(i)), append(model.y, modelled(chunk)/modelled(prompt))
	}
	f.curves = []paperCurve{measured, model}
	return f
}

// chunks cuts a prompt.
func chunks(prompt, chunk int64) []sim.Span {
	var spans []sim.Span
	for at := int64(0); at < prompt; at += chunk {
		spans = append(spans, sim.Span{Query: int(min(chunk, prompt-at)), Prefix: int(at)})
	}
	return spans
}

// table returns the figure's numbers.
func (f *paperFigure) table() []byte {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	x := f.xLabel
	if f.bars {
		x = "case"
	}
	must(w.Write([]string{"curve", x, f.yLabel}))
	for _, c := range f.curves {
		for i := range c.x {
			at := plain(c.x[i])
			if f.bars {
				at = f.groups[i]
			}
			must(w.Write([]string{c.name, at, fmt.Sprintf("%.4g", c.y[i])}))
		}
	}
	w.Flush()
	return buf.Bytes()
}
