package answers

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// validatedFigure is one of a run, live and simulated.
type validatedFigure struct {
	metric, title, unit string
	scale               float64 // from the metric's unit
	drawn               bool
}

// validated are the figures of a validation's charts and table: a goal is on the first six.
var validated = []validatedFigure{
	{"ttft_mean_s", "TTFT mean", "s", 1, true}, {"ttft_p99_s", "TTFT P99", "s", 1, true},
	{"tbt_mean_s", "TBT mean", "ms", 1e3, true}, {"tbt_p99_s", "TBT P99", "ms", 1e3, true},
	{"throughput_tok_s", "throughput", "tokens/s", 1, true},
	{"blocks_loaded_per_step", "blocks loaded a step", "", 1, true},
	{"step_decode_mean_s", "decode step", "ms", 1e3, false},
	{"step_mixed_mean_s", "mixed step", "ms", 1e3, false},
}

// readValidation makes the page of live runs held against their simulation.
func readValidation(dir string) (*builder, error) {
	r, err := validate.Read(dir)
	if err != nil {
		return nil, err
	}
	p := &builder{Doc: doc.Doc{Title: nameOf(dir) + ": live and simulated"}}
	p.Lead = []string{fmt.Sprintf("%s on %s: %d live runs and the simulation of each.", r.Name,
		r.Device, len(r.Runs))}
	p.judge(r)
	s := doc.Figure{Title: "Simulated over live",
		Caption: "A dot is a run; on the line both are equal."}
	for _, v := range validated {
		if c := scatter(r, v); v.drawn && c != nil {
			s.Charts = append(s.Charts, c)
		}
	}
	if len(s.Charts) > 0 {
		p.Figures = append(p.Figures, s)
	}
	phases, err := figures.ValidationData(dir)
	if err != nil {
		return nil, err
	}
	s = doc.Figure{Title: "Phases of a step",
		Caption: "Live, then the model's of the same batches; of " +
			"steps whose phases were measured."}
	for _, f := range phases {
		for _, c := range f.Charts {
			s.Charts = append(s.Charts, c)
		}
	}
	if len(phases) > 0 {
		p.Figures = append(p.Figures, s)
	}
	p.Tables = append(p.Tables, validationTable(r))
	simulated := filepath.Join(dir, "simulated")
	folders, err := files.Glob(simulated, "*")
	if err != nil {
		return nil, err
	}
	if _, err := p.restOn(folders, nil); err != nil {
		return nil, err
	}
	if len(folders) > 0 {
		p.addFile(filepath.Join(folders[0], "config.toml"), "config.toml of a simulated run, "+
			filepath.Base(folders[0]))
	}
	return p, nil
}

func joined(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " (" + unit + ")"
}

// judge says how many runs meet the goals, and warns of what the runs are to be read with.
func (p *builder) judge(r *validate.Report) {
	below, met := 0, 0
	var warnings []warn.Said
	for i := range r.Runs {
		v := &r.Runs[i]
		if !v.Saturated {
			below++
			if len(v.Misses()) == 0 {
				met++
			}
		}
		for _, w := range v.Simulated.Warnings {
			warnings = append(warnings, warn.Said{Warning: w, Of: v.Run})
		}
	}
	goals := "No run is below saturation; the goals are for those."
	if below > 0 {
		goals = fmt.Sprintf("%d of %d runs below saturation meet every goal; %.0f %% are to.", met, below,
			100*validate.GoalShare)
	}
	p.Answers = append(p.Answers, goals)
	if swaps, pairs := validate.Swaps(r.Runs); pairs > 0 {
		p.Answers = append(p.Answers, fmt.Sprintf("The order of the systems at one load differs in "+
			"%d of %d pairs, by mean TTFT and by throughput.", len(swaps), pairs))
	}
	if float64(met) < validate.GoalShare*float64(below) {
		p.Warnings = append(p.Warnings, doc.Warning{Text: fmt.Sprintf("fewer runs than %.0f %% meet "+
			"every goal", 100*validate.GoalShare)})
	}
	for _, s := range validate.Stalled(r.Runs) {
		p.Warnings = append(p.Warnings, doc.Warning{Text: fmt.Sprintf("stood still within steps for %s s",
			digits(s.Seconds)), Of: s.Run.Run})
	}
	disturbed, _ := validate.Disturbed(r.Runs)
	for _, d := range disturbed {
		p.Warnings = append(p.Warnings, doc.Warning{Text: fmt.Sprintf("disturbed by its host: one in 20 "+
			"steps of the same work takes %s times their median", digits(d.Slow)), Of: d.Run.Run})
	}
	p.warn(nil, warnings, len(r.Runs))
}

// scatter has a dot a run, simulated over live; nil where no run has both.
func scatter(r *validate.Report, v validatedFigure) *doc.Chart {
	dots := []doc.Line{{Name: "below saturation", Color: "#0072b2", Dots: true},
		{Name: "saturated", Color: "#c62f1f", Dots: true}}
	low, high := math.Inf(1), 0.0
	for j := range r.Runs {
		c, ok := r.Runs[j].Of(v.metric)
		if !ok || c.Live <= 0 || c.Simulated <= 0 {
			continue
		}
		into := &dots[0]
		if r.Runs[j].Saturated {
			into = &dots[1]
		}
		x, y := v.scale*c.Live, v.scale*c.Simulated
		into.Points = append(into.Points, doc.Point{X: x, Y: y, Note: r.Runs[j].Run})
		low, high = min(low, x, y), max(high, x, y)
	}
	if high == 0 {
		return nil
	}
	c := &doc.Chart{Title: v.title, X: joined("live", v.unit), Y: joined("simulated", v.unit),
		LogX: true, LogY: true}
	for _, l := range dots {
		slices.SortFunc(l.Points, func(a, b doc.Point) int { return cmp.Compare(a.X, b.X) })
		if len(l.Points) > 0 {
			c.Lines = append(c.Lines, l)
		}
	}
	c.Lines = append(c.Lines, doc.Line{Name: "equal", Color: "#7a7a7a", Dashed: true, Bare: true,
		Points: []doc.Point{{X: low, Y: low}, {X: high, Y: high}}})
	return c
}

// validationTable has a row a run, the worst first: what was measured, and the error of the
// simulation.
func validationTable(r *validate.Report) doc.Table {
	t := doc.Table{Title: "Runs",
		Note:   "Live, and how far the simulation is off; ! is beyond the goal.",
		Folded: len(r.Runs) > mostRows}
	names := []string{"run"}
	for _, v := range validated {
		names = append(names, joined(v.title, v.unit), "%")
	}
	t.Columns = columns(1, append(names, "goals")...)
	runs := r.WorstFirst()
	for i := range runs {
		missed := runs[i].Misses()
		cells := []string{runs[i].Run}
		for _, v := range validated {
			c, ok := runs[i].Of(v.metric)
			switch {
			case !ok || c.Live == 0 && c.Simulated == 0:
				cells = append(cells, "-", "-")
				continue
			case c.Error == nil:
				cells = append(cells, "0", "-")
				continue
			}
			off := percent(*c.Error)
			if slices.Contains(missed, v.metric) {
				off += " !"
			}
			cells = append(cells, digits(v.scale*c.Live), off)
		}
		judged := "met"
		switch {
		case runs[i].Saturated:
			judged = "saturated"
		case len(missed) > 0:
			judged = "missed"
		}
		t.Rows = append(t.Rows, row(append(cells, judged)...))
	}
	return t
}
