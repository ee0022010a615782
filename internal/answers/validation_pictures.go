package answers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// validationFigures returns the pictures of a validation: simulated over live, the phases of steps,
// and all steps of each run whose steps were kept.
func validationFigures(r *validate.Report) (all []doc.Figure) {
	all = append(drawable(overLive(r)), phases(r)...)
	for i := range r.Runs {
		if c := stepByStep(&r.Runs[i]); c != nil {
			all = append(all, doc.Figure{Name: "steps-" + doc.FileName(r.Runs[i].Run), Minor: true,
				Title: "Steps of " + r.Runs[i].Run, Charts: []*doc.Chart{c},
				Caption: servedBy(r, r.Runs[i:i+1]) + "."})
		}
	}
	return all
}

// phases has one figure per load: the phases of the split steps, live and modelled.
func phases(r *validate.Report) (all []doc.Figure) {
	for _, load := range distinct(r.Runs, arrived) {
		of := where(r.Runs, func(v *validate.ValidatedRun) bool { return arrived(v) == load })
		f := doc.Figure{Name: "phases-" + doc.FileName(strings.TrimSuffix(load, "/s")),
			Title: "Phases of a step, " + load,
			Caption: "Live, then the model's of the same batches; of steps whose phases were measured. " +
				servedBy(r, of) + "."}
		for i, kind := range []string{"decode", "mixed"} {
			c := &doc.Chart{Kind: doc.Bars, Y: "Time per step (ms)",
				Title: []string{"steps that only decode, ", "steps with a prefill, "}[i] + load}
			for j := range of {
				c.Bars = append(c.Bars, phaseBars(&of[j], kind)...)
			}
			if len(c.Bars) > 0 {
				f.Charts = append(f.Charts, c)
			}
		}
		all = append(all, drawable(f)...)
	}
	return all
}

// phaseBars returns the mean steps of one kind of a run, live and modelled.
func phaseBars(r *validate.ValidatedRun, kind string) []doc.Bar {
	n := 0.0
	for _, s := range r.Steps {
		if s.Split && s.Mixed == (kind == "mixed") && s.Live > 0 {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	name := strings.Replace(r.Run, " "+r.Variant, "", 1)
	bars := []doc.Bar{{Name: name + ", live"}, {Name: name + ", model"}}
	for _, ph := range papers.Phases() {
		c, has := r.Of("phase_" + kind + "_" + ph.Key + "_s")
		for i, sum := range []float64{c.Live, c.Simulated} {
			if has {
				bars[i].Parts = append(bars[i].Parts, doc.Part{Name: ph.Name, Color: ph.Color,
					Value: 1e3 * math.Max(0, sum) / n})
			}
		}
	}
	return bars
}

// stepByStep has one dot per step, modelled over measured; nil if no step was kept.
func stepByStep(r *validate.ValidatedRun) *doc.Chart {
	c := &doc.Chart{Kind: doc.Lines, Title: r.Run, X: "Measured step (ms)", Y: "Modelled step (ms)",
		LogX: true, LogY: true}
	low, high := math.Inf(1), 0.0
	for i, name := range []string{"steps that only decode", "steps with a prefill"} {
		l := doc.Line{Color: []string{"#0072b2", "#d55e00"}[i], Dots: true}
		for _, s := range r.Steps {
			if s.Mixed == (i == 1) && s.Live > 0 && s.Model > 0 {
				x, y := 1e3*s.Live, 1e3*s.Model
				l.Points = append(l.Points, doc.Point{X: x, Y: y})
				low, high = min(low, x, y), max(high, x, y)
			}
		}
		if l.Name = fmt.Sprintf("%s (%d)", name, len(l.Points)); len(l.Points) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	if high == 0 {
		return nil
	}
	for i, k := range []float64{1, 0.9, 1.1} {
		from, to := max(low, low/k), min(high, high/k)
		c.Lines = append(c.Lines, doc.Line{Name: []string{"measured = modelled", "10 % off",
			"10 % off"}[i], Color: "#7a7a7a", Dashed: i > 0, Bare: true,
			Points: []doc.Point{{X: from, Y: k * from}, {X: to, Y: k * to}}})
	}
	return c
}

// arrived describes the load of a run, such as "model=llama3-8b, 2/s".
func arrived(r *validate.ValidatedRun) string {
	load := fmt.Sprintf("%g/s", r.Rate)
	if r.Rate == 0 {
		load = Count(r.Live.Concurrency, "client")
	}
	return strings.TrimPrefix(r.Variant+", "+load, ", ")
}

// servedBy describes the runs: device, model and card, trace, number of requests, and seeds.
func servedBy(r *validate.Report, runs []validate.ValidatedRun) string {
	type run = validate.ValidatedRun
	words := []string{r.Device,
		each(runs, "models", func(v run) string { return v.Model + " simulated on " + v.Simulated.GPU }),
		each(runs, "traces", func(v run) string { return v.Trace }),
		each(runs, "numbers of requests",
			func(v run) string { return Count(v.Live.Requests, "request") }),
		each(runs, "seeds", func(v run) string { return fmt.Sprint("seed ", v.Seed) })}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}
