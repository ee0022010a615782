package answers

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/sim"
)

// ValidationFile is the file that identifies a validation's folder.
const ValidationFile = "validate.json"

// readValidation builds the document of a validation's folder.
func readValidation(dir string) (*doc.Doc, error) {
	r, err := validate.Read(dir)
	if err != nil {
		return nil, err
	}
	p := Validation(r)
	folders, err := validate.Simulated(dir)
	if err != nil {
		return nil, err
	}
	if _, err := restOn(p, folders, nil); err != nil {
		return nil, err
	}
	if len(folders) > 0 {
		addFile(p, filepath.Join(folders[0], "config.toml"), "config.toml of a simulated run, "+
			r.Runs[0].Run)
	}
	return p, nil
}

// overLive has one chart per figure with a goal.
func overLive(r *validate.Report) doc.Figure {
	f := doc.Figure{Name: "over-live", Title: "Simulated over live",
		Caption: "A dot is a run; on the line both are equal."}
	for _, key := range withGoals {
		m := compared(key)
		if c := scatter(r, key, &m); c != nil {
			f.Charts = append(f.Charts, c)
		}
	}
	return f
}

// scatter has one dot per run, simulated over live; nil if no run has both.
func scatter(r *validate.Report, key string, m *sim.Metric) *doc.Chart {
	dots := []doc.Line{{Name: "below saturation", Color: "#0072b2", Dots: true},
		{Name: "saturated", Color: "#c62f1f", Dots: true}}
	low, high := math.Inf(1), 0.0
	for i := range r.Runs {
		c, has := r.Runs[i].Of(key)
		if !has || c.Live <= 0 || c.Simulated <= 0 {
			continue
		}
		into := &dots[0]
		if r.Runs[i].Saturated {
			into = &dots[1]
		}
		x, y := m.Scale*c.Live, m.Scale*c.Simulated
		into.Points = append(into.Points, doc.Point{X: x, Y: y, Note: r.Runs[i].Run})
		low, high = min(low, x, y), max(high, x, y)
	}
	if high == 0 {
		return nil
	}
	axis := func(side string) string {
		if m.Unit == "" {
			return side
		}
		return side + " (" + m.Unit + ")"
	}
	c := &doc.Chart{Kind: doc.Lines, Title: m.Title(), X: axis("live"), Y: axis("simulated"),
		LogX: true, LogY: true}
	for _, l := range dots {
		slices.SortFunc(l.Points, func(a, b doc.Point) int { return cmp.Compare(a.X, b.X) })
	}
	c.Lines = append(drawnLines(dots), doc.Line{Name: "equal",
		Color: "#7a7a7a", Dashed: true, Bare: true,
		Points: []doc.Point{{X: low, Y: low}, {X: high, Y: high}}})
	return c
}
