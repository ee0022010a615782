package answers

import (
	"fmt"
	"maps"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// timelineBins is the maximum number of time spans of a time line.
const timelineBins = 400

// inside draws the tables of single runs: the distributions of TTFT and TBT, and the time lines of
// runs whose steps were written.
func (r *Runs) inside(v *view) (all []doc.Figure, err error) {
	for i := range v.panels {
		p := &v.panels[i]
		f := doc.Figure{Name: "cdf", Title: "Distributions"}
		if f.Charts, err = r.distributions(p); err != nil {
			return nil, err
		}
		if len(v.panels) > 1 {
			f.Name += "-" + doc.FileName(p.model+"-"+p.gpu)
		}
		all = append(all, drawable(f)...)
	}
	for i := range r.Sums {
		s, steps := &r.Sums[i], steps{}
		found, err := eachRow(r.folder(s), run.StepsCSV, steps.add)
		if err != nil {
			return nil, err
		}
		if found {
			all = append(all, doc.Figure{Name: "timeline-" + doc.FileName(s.Name), Minor: true,
				Title: "Over time: " + s.Name, Charts: steps.charts(),
				Caption: fmt.Sprintf("This run: %s, %s, seed %d.", papers.SystemName(s.System),
					loadOf(s).words(r.Unit), s.Seed)})
		}
	}
	return all, nil
}

// steps holds the drawn columns of a table of steps.
type steps map[string][]float64

// Time columns of every table of steps.
const (
	startColumn   = "start_s"
	elapsedColumn = "elapsed_s"
)

// add adds a row. A missing mandatory column is an error.
func (s steps) add(r *files.Row) {
	mandatory := []string{startColumn, elapsedColumn, "waiting", "decodes", "prefills"}
	for _, name := range mandatory {
		s[name] = append(s[name], r.Number(name))
	}
	for _, c := range stepColumns {
		if name := c.column; r.Has(name) && !slices.Contains(mandatory, name) {
			s[name] = append(s[name], r.Number(name))
		}
	}
}

// stepColumn defines how a column is drawn.
type stepColumn struct {
	column, chart, name, unit string
	scale                     float64
	kind                      columnKind
}

// columnKind is how a value of a step relates to time.
type columnKind int

const (
	inStep    columnKind = iota // the value holds during its step
	untilNext                   // it holds until the next step, as memory does
	perTime                     // it is a sum, divided by the time of its step
)

const gib = 1.0 / (1 << 30)

// stepColumns are in the order of the charts.
var stepColumns = []stepColumn{
	{"waiting", "Queue", "waiting", "Requests", 1, inStep},
	{"decodes", "Batch", "decodes", "Requests", 1, inStep},
	{"prefills", "Batch", "prefills", "Requests", 1, inStep},
	{"gpu_busy_s", "Busy", "GPU", "Share (%)", 100, perTime},
	{"h2d_busy_s", "Busy", "loads", "Share (%)", 100, perTime},
	{"d2h_busy_s", "Busy", "saves", "Share (%)", 100, perTime},
	{"prefix_loaded_bytes", "Cached prefixes moved", "loads", "GB/s", 1e-9, perTime},
	{"prefix_saved_bytes", "Cached prefixes moved", "saves", "GB/s", 1e-9, perTime},
	{"prefix_ssd_read_bytes", "Cached prefixes moved", "SSD read", "GB/s", 1e-9, perTime},
	{"prefix_ssd_written_bytes", "Cached prefixes moved", "SSD written", "GB/s", 1e-9, perTime},
	{"dram_bytes", "DRAM", "DRAM", "GiB", gib, untilNext},
	{"hbm_kv_bytes", "HBM", "HBM KV", "GiB", gib, untilNext},
	{"h2d_bytes", "Link", "loads", "GB/s", 1e-9, perTime},
	{"d2h_bytes", "Link", "saves", "GB/s", 1e-9, perTime},
	{"blocks_loaded", "KV blocks moved", "loads", "Blocks a step", 1, inStep},
	{"blocks_saved", "KV blocks moved", "saves", "Blocks a step", 1, inStep},
}

// charts draws the columns over virtual time, as means over equal spans. A column of zeros has no
// line.
func (s steps) charts() (all []*doc.Chart) {
	start, elapsed := s[startColumn], s[elapsedColumn]
	last := len(start) - 1
	from, end := start[0], start[last]+elapsed[last]
	width := max(end-from, 1e-12) / float64(min(timelineBins, last+1))
	for _, c := range stepColumns {
		values := s[c.column]
		if !slices.ContainsFunc(values, func(v float64) bool { return v != 0 }) {
			continue
		}
		bins := make([]float64, min(timelineBins, last+1))
		for row, v := range values {
			to := start[row] + elapsed[row]
			switch {
			case c.kind == perTime:
				v /= max(elapsed[row], 1e-9)
			case c.kind == untilNext && row < last:
				to = start[row+1]
			}
			spread(bins, start[row]-from, to-from, width, c.scale*v)
		}
		if n := len(all); n == 0 || all[n-1].Title != c.chart {
			all = append(all, &doc.Chart{Title: c.chart, Y: c.unit, Low: true,
				XEnds: []float64{min(0, from), end}, Whole: c.unit == "Requests"})
		}
		of := all[len(all)-1]
		of.Lines = append(of.Lines, overBins(c.name, bins, from, width))
	}
	if len(all) > 0 {
		all[len(all)-1].X = "Time (s)"
	}
	return all
}

// timed reports whether a run has the phases of all its steps. A live run that does not report its
// unsplit time has phases for some steps only.
func timed(s *metrics.Summary) bool {
	_, whole := s.PhaseS[metrics.UnsplitPhase]
	return s.Steps > 0 && len(s.PhaseS) > 0 && (whole || s.Live == nil)
}

// phases draws the phases of the mean step: one bar per row, and one chart per panel.
func (v *view) phases() []doc.Figure {
	f := doc.Figure{Name: "time", Title: "Where the time of a step went"}
	used := map[string]bool{}
	for i := range v.panels {
		c := &doc.Chart{Title: v.title(i), Y: "Time per step (ms)"}
		if v.x.varies {
			c.X = v.x.label
		}
		for _, row := range v.panels[i].rows {
			row.runs = slices.DeleteFunc(slices.Clone(row.runs),
				func(s *metrics.Summary) bool { return !timed(s) })
			if len(row.runs) == 0 {
				continue
			}
			group := row.at
			if v.x.varies {
				group = stats.Tick(row.x)
			}
			b := phaseBar(group, row.series, row.runs)
			for _, p := range b.Parts {
				used[p.Name] = used[p.Name] || p.Value > 0
			}
			c.Bars = append(c.Bars, b)
		}
		f.Charts = append(f.Charts, c)
	}
	for _, c := range f.Charts {
		for i := range c.Bars {
			c.Bars[i].Parts = where(c.Bars[i].Parts, func(p *doc.Part) bool { return used[p.Name] })
		}
	}
	f.Charts = where(f.Charts, func(c **doc.Chart) bool { return len((*c).Bars) > 0 && len(used) > 0 })
	return drawable(f)
}

// phaseBar stacks the mean phases of a step of runs.
func phaseBar(group, series string, runs []*metrics.Summary) doc.Bar {
	b := doc.Bar{Group: group, Name: series}
	for _, ph := range papers.Phases() {
		var values []float64
		for i := range runs {
			values = append(values, 1e3*runs[i].PhaseS[ph.Key]/float64(runs[i].Steps))
		}
		p := doc.Part{Name: ph.Name}
		p.Value, p.Sample = doc.Over(values)
		b.Parts = append(b.Parts, p)
	}
	var totals []float64
	for i := range runs {
		sum := 0.0
		for _, key := range slices.Sorted(maps.Keys(runs[i].PhaseS)) { // so that rounding never varies
			sum += runs[i].PhaseS[key]
		}
		totals = append(totals, 1e3*sum/float64(runs[i].Steps))
	}
	_, b.Sample = doc.Over(totals)
	return b
}
