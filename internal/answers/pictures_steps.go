package answers

import (
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// timelineBins is the maximum number of time spans of a time line.
const timelineBins = 400

// inside draws the tables of single runs: the distributions of TTFT and TBT, and the time lines of
// runs whose steps were written.
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
		steps := steps{}
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

// steps holds the drawn columns of a table of steps.
type steps map[string][]float64

// Time columns of every table of steps.
const (
	startColumn   = "start_s"
	elapsedColumn = "elapsed_s"
)

// add adds a row. A missing mandatory column is an error.
func (s steps) add(r *resultRow) {
	for _, name := range []string{startColumn, elapsedColumn, "waiting", "decodes", "prefills"} {
		s[name] = append(s[name], r.number(name))
	}
	more := []string{"blocks_loaded", "blocks_saved"}
	for _, c := range stepColumns {
		more = append(more, c.column)
	}
	for _, name := range more {
		if slices.Contains(r.header, name) {
			s[name] = append(s[name], r.number(name))
		}
	}
}

// stepColumn defines how a column of time, memory or link use is drawn.
type stepColumn struct {
	column, chart, name, unit string
	scale                     float64
	rate                      bool   // divided by the time of its step
	tier                      string // of KV below HBM, which may do nothing
}

const gib = 1.0 / (1 << 30)

// stepColumns are in the order of the charts.
var stepColumns = []stepColumn{
	{"gpu_busy_s", "Busy", "GPU", "Share (%)", 100, true, ""},
	{"h2d_busy_s", "Busy", "h2d", "Share (%)", 100, true, "dram"},
	{"d2h_busy_s", "Busy", "d2h", "Share (%)", 100, true, "dram"},
	{"prefix_loaded_bytes", "Cached prefixes moved", "loaded", "GB/s", 1e-9, true, "dram"},
	{"prefix_saved_bytes", "Cached prefixes moved", "saved", "GB/s", 1e-9, true, "dram"},
	{"prefix_ssd_read_bytes", "Cached prefixes moved", "SSD read", "GB/s", 1e-9, true, "ssd"},
	{"prefix_ssd_written_bytes", "Cached prefixes moved", "SSD written", "GB/s", 1e-9, true, "ssd"},
	{"dram_bytes", "DRAM", "DRAM", "GiB", gib, false, "dram"},
	{"hbm_kv_bytes", "HBM", "HBM KV", "GiB", gib, false, ""},
	{"h2d_bytes", "Link", "h2d", "GB/s", 1e-9, true, "dram"},
	{"d2h_bytes", "Link", "d2h", "GB/s", 1e-9, true, "dram"},
}

// charts draws queue, batch and the other step columns over virtual time, as means over equal
// spans. Tiers that do not exist get no line.
func (s steps) charts() []*doc.Chart {
	all := []*doc.Chart{{Title: "Queue", Y: "Requests", Lines: s.lines("waiting")},
		{Title: "Batch", Y: "Requests", Lines: s.lines("decodes", "prefills")}}
	used := map[string]bool{"": true}
	for _, c := range stepColumns {
		used[c.tier] = used[c.tier] || slices.ContainsFunc(s[c.column], isUsed)
	}
	var more []*doc.Chart
	for _, c := range stepColumns {
		values := slices.Clone(s[c.column])
		if len(values) == 0 || !used[c.tier] {
			continue
		}
		for row := range values {
			if values[row] *= c.scale; c.rate {
				values[row] /= max(s[elapsedColumn][row], 1e-9)
			}
		}
		if n := len(more); n == 0 || more[n-1].Title != c.chart {
			more = append(more, &doc.Chart{Title: c.chart, Y: c.unit})
		}
		of := more[len(more)-1]
		of.Lines = append(of.Lines, doc.Line{Name: c.name, Bare: true,
			Points: s.binned(values, !c.rate)})
	}
	more = slices.DeleteFunc(more, func(c *doc.Chart) bool {
		return !slices.ContainsFunc(c.Lines, func(l doc.Line) bool {
			return slices.ContainsFunc(l.Points, func(p doc.Point) bool { return isUsed(p.Y) })
		})
	})
	all = append(all, more...)
	// A link's bytes show the same.
	if moved := s.lines("blocks_loaded", "blocks_saved"); len(moved) > 0 && len(s["h2d_bytes"]) == 0 {
		all = append(all, &doc.Chart{Title: "KV blocks moved", Y: "Blocks a step", Lines: moved})
	}
	start, n := s[startColumn], len(s[startColumn])
	for _, c := range all {
		c.Low = true
		c.XEnds = []float64{min(0, start[0]), start[n-1] + s[elapsedColumn][n-1]}
	}
	all[len(all)-1].X = "Time (s)"
	return all
}

func isUsed(v float64) bool { return v != 0 }

// lines returns the lines of the columns that exist, named without "blocks_".
func (s steps) lines(names ...string) (lines []doc.Line) {
	for _, name := range names {
		if values := s[name]; len(values) > 0 {
			lines = append(lines, doc.Line{Name: strings.TrimPrefix(name, "blocks_"), Bare: true,
				Points: s.binned(values, false)})
		}
	}
	return lines
}

// binned returns the mean of a step value per equal span of time, weighted by the steps' times.
// With held, a value persists between steps, as memory does.
func (s steps) binned(values []float64, held bool) []doc.Point {
	start, length, n := s[startColumn], s[elapsedColumn], len(values)
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
