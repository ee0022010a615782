package answers

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/doc"
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
func (s steps) add(r *resultRow) {
	mandatory := []string{startColumn, elapsedColumn, "waiting", "decodes", "prefills"}
	for _, name := range mandatory {
		s[name] = append(s[name], r.number(name))
	}
	for _, c := range stepColumns {
		if name := c.column; slices.Contains(r.header, name) && !slices.Contains(mandatory, name) {
			s[name] = append(s[name], r.number(name))
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
	{"h2d_busy_s", "Busy", "h2d", "Share (%)", 100, perTime},
	{"d2h_busy_s", "Busy", "d2h", "Share (%)", 100, perTime},
	{"prefix_loaded_bytes", "Cached prefixes moved", "loaded", "GB/s", 1e-9, perTime},
	{"prefix_saved_bytes", "Cached prefixes moved", "saved", "GB/s", 1e-9, perTime},
	{"prefix_ssd_read_bytes", "Cached prefixes moved", "SSD read", "GB/s", 1e-9, perTime},
	{"prefix_ssd_written_bytes", "Cached prefixes moved", "SSD written", "GB/s", 1e-9, perTime},
	{"dram_bytes", "DRAM", "DRAM", "GiB", gib, untilNext},
	{"hbm_kv_bytes", "HBM", "HBM KV", "GiB", gib, untilNext},
	{"h2d_bytes", "Link", "h2d", "GB/s", 1e-9, perTime},
	{"d2h_bytes", "Link", "d2h", "GB/s", 1e-9, perTime},
	{"blocks_loaded", "KV blocks moved", "loaded", "Blocks a step", 1, inStep},
	{"blocks_saved", "KV blocks moved", "saved", "Blocks a step", 1, inStep},
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
				XEnds: []float64{min(0, from), end}})
		}
		of := all[len(all)-1]
		of.Lines = append(of.Lines, overBins(c.name, bins, from, width))
	}
	if len(all) > 0 {
		all[len(all)-1].X = "Time (s)"
	}
	return all
}
