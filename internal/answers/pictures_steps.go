package answers

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// timelineBins is how many spans of time a time line has at most.
const timelineBins = 400

// inside draws what the tables of single runs hold: the distributions of TTFT and TBT, and the time
// lines of runs whose steps were written.
func (v *view) inside() (all []doc.Figure, err error) {
	for i := range v.panels {
		p := &v.panels[i]
		f := doc.Figure{Name: "cdf", Title: "Distributions"}
		if f.Charts, err = v.distributions(p); err != nil {
			return nil, err
		}
		if len(v.panels) > 1 {
			f.Name += "-" + doc.FileName(p.model+"-"+p.gpu)
		}
		if len(f.Charts) > 0 {
			all = append(all, f)
		}
	}
	for i := range v.all {
		s := &v.all[i]
		var steps steps
		found, err := eachRow(s.folder, run.StepsCSV, steps.add)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, doc.Figure{Name: "timeline-" + doc.FileName(s.Name), Minor: true,
				Title: "Over time: " + s.Name, Charts: steps.charts(),
				Caption: "This run: " + s.series + ", " + s.load + ", " + listSeeds([]uint64{s.Seed}) + "."})
		}
	}
	return all, nil
}

// steps has the columns of a table of steps that are drawn.
type steps struct {
	header []string
	of     map[string][]float64
}

// Columns of time of every table of steps.
const (
	startColumn   = "start_s"
	elapsedColumn = "elapsed_s"
)

// add adds a row. One of the columns that every table has is an error if it is missing.
func (s *steps) add(r *resultRow) {
	if s.of == nil {
		s.header, s.of = slices.Clone(r.header), map[string][]float64{}
	}
	always := []string{startColumn, elapsedColumn, "waiting", "decodes", "prefills"}
	for _, name := range slices.Concat(always, s.header) {
		_, drawn := columnOfStep(name)
		drawn = drawn || name == "blocks_loaded" || name == "blocks_saved"
		if drawn || len(s.of[name]) <= r.before && slices.Contains(always, name) {
			s.of[name] = append(s.of[name], r.number(name))
		}
	}
}

// stepColumn says how a column of a table of steps is drawn.
type stepColumn struct {
	panel, name, unit string
	scale             float64
	rate              bool // divided by the time of its step
	tier              string
}

// columnOfStep describes a column of time, memory or link use. Others have no panel.
func columnOfStep(column string) (c stepColumn, drawn bool) {
	if busy, ok := strings.CutSuffix(column, "_busy_s"); ok {
		return stepColumn{"Busy", strings.Replace(busy, "gpu", "GPU", 1), "Share (%)", 100, true,
			tierOf(column)}, true
	}
	where, rest, _ := strings.Cut(column, "_")
	if moved, ok := strings.CutSuffix(rest, "_bytes"); ok && where == "prefix" {
		words := strings.ReplaceAll(strings.ReplaceAll(moved, "ssd", "SSD"), "_", " ")
		return stepColumn{"Cached prefixes moved", words, "GB/s", 1e-9, true, tierOf(column)}, true
	}
	panel, ok := map[string]string{"hbm": "HBM", "dram": "DRAM", "kv": "KV cache", "link": "Link",
		"h2d": "Link", "d2h": "Link", "pcie": "Link"}[where]
	if !ok {
		return c, false
	}
	c = stepColumn{panel: panel, name: panel, scale: 1, tier: tierOf(column)}
	for _, u := range []struct {
		suffix, unit string
		scale        float64
	}{
		{"bytes", "GiB", 1.0 / (1 << 30)}, {"gib", "GiB", 1}, {"mib", "GiB", 1.0 / 1024},
		{"gb_s", "GB/s", 1}, {"share", "Share (%)", 100}, {"use", "Share (%)", 100},
		{"blocks", "Blocks", 1}, {"tokens", "Tokens", 1},
	} {
		if words, ok := strings.CutSuffix(rest, u.suffix); ok {
			rest, c.unit, c.scale = strings.TrimSuffix(words, "_"), u.unit, u.scale
			break
		}
	}
	if panel == "Link" {
		if c.name = where; c.unit == "GiB" { // of a step
			c.unit, c.scale = "GB/s", c.scale*(1<<30)/1e9
		}
	}
	c.rate = c.unit == "GB/s"
	if rest != "" {
		c.name += " " + strings.ReplaceAll(strings.ReplaceAll(rest, "_", " "), "kv", "KV")
	}
	return c, true
}

// tierOf is the tier of KV below HBM that a column is about, "" where it is about none.
func tierOf(column string) string {
	if strings.Contains(column, "ssd") {
		return "ssd"
	}
	for _, of := range []string{"dram_", "h2d_", "d2h_", "prefix_loaded_", "prefix_saved_"} {
		if strings.HasPrefix(column, of) {
			return "dram"
		}
	}
	return ""
}

// charts are queue, batch and what else steps have over virtual time: means over equal spans of it.
// What a tier that is not there does is no line at zero.
func (s *steps) charts() []*doc.Chart {
	all := []*doc.Chart{{Title: "Queue", Y: "Requests", Lines: s.lines("waiting")},
		{Title: "Batch", Y: "Requests", Lines: s.lines("decodes", "prefills")}}
	used, link := map[string]bool{"": true}, false
	for name, values := range s.of {
		if c, drawn := columnOfStep(name); drawn {
			link = link || c.panel == "Link"
			used[c.tier] = used[c.tier] || slices.ContainsFunc(values, isUsed)
		}
	}
	var more []*doc.Chart
	for _, name := range s.header {
		c, drawn := columnOfStep(name)
		if !drawn || !used[c.tier] {
			continue
		}
		i := slices.IndexFunc(more, func(g *doc.Chart) bool {
			return g.Title == c.panel && g.Y == c.unit
		})
		if i < 0 {
			i, more = len(more), append(more, &doc.Chart{Title: c.panel, Y: c.unit})
		}
		values := slices.Clone(s.of[name])
		for row := range values {
			if values[row] *= c.scale; c.rate {
				values[row] /= max(s.of[elapsedColumn][row], 1e-9)
			}
		}
		more[i].Lines = append(more[i].Lines, doc.Line{Name: c.name, Bare: true,
			Points: s.binned(values, !c.rate)})
	}
	more = slices.DeleteFunc(more, func(c *doc.Chart) bool {
		return !slices.ContainsFunc(c.Lines, func(l doc.Line) bool {
			return slices.ContainsFunc(l.Points, func(p doc.Point) bool { return isUsed(p.Y) })
		})
	})
	slices.SortStableFunc(more, func(a, b *doc.Chart) int { return cmp.Compare(a.Title, b.Title) })
	all = append(all, more...)
	// A link's bytes say the same.
	if moved := s.lines("blocks_loaded", "blocks_saved"); len(moved) > 0 && !link {
		all = append(all, &doc.Chart{Title: "KV blocks moved", Y: "Blocks a step", Lines: moved})
	}
	start, n := s.of[startColumn], len(s.of[startColumn])
	for _, c := range all {
		c.Low = true
		c.XEnds = []float64{min(0, start[0]), start[n-1] + s.of[elapsedColumn][n-1]}
	}
	all[len(all)-1].X = "Time (s)"
	return all
}

func isUsed(v float64) bool { return v != 0 }

// lines are those of columns that are there, named without "blocks_".
func (s *steps) lines(names ...string) (lines []doc.Line) {
	for _, name := range names {
		if values := s.of[name]; len(values) > 0 {
			lines = append(lines, doc.Line{Name: strings.TrimPrefix(name, "blocks_"), Bare: true,
				Points: s.binned(values, false)})
		}
	}
	return lines
}

// binned is the mean of a value of each step in each of equal spans of time, weighted by the steps'
// times. What is held stays between steps, as memory does.
func (s *steps) binned(values []float64, held bool) []doc.Point {
	start, length, n := s.of[startColumn], s.of[elapsedColumn], len(values)
	from, to := start[0], start[n-1]+length[n-1]
	bins := min(timelineBins, max(1, n))
	width := (to - from) / float64(bins)
	sum, time, last := make([]float64, bins), make([]float64, bins), make([]float64, bins)
	for row, v := range values {
		at, end := start[row], start[row]+length[row]
		bin := 0
		if width > 0 {
			bin = min(int((at-from)/width), bins-1)
		}
		for ; at < end; bin++ {
			next := end
			if bin < bins-1 {
				next = min(end, from+float64(bin+1)*width)
			}
			if next > at {
				sum[bin] += v * (next - at)
				time[bin] += next - at
				last[bin], at = v, next
			}
		}
	}
	points, before := make([]doc.Point, bins), 0.0
	for bin := range sum {
		p := &points[bin]
		p.X, p.Y = from+(float64(bin)+0.5)*width, sum[bin]/max(width, 1e-12)
		if held && time[bin] > 0 {
			p.Y, before = sum[bin]/time[bin], last[bin]
		} else if held {
			p.Y = before
		}
	}
	return points
}
