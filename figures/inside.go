package figures

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
)

// inside draws what the tables of single runs hold: the distributions of TTFT and TBT, and
// the time lines of runs whose steps were written.
func inside(runs []Run, ps []panel, x abscissa, caption string) ([]picture, error) {
	var pictures []picture
	for i := range ps {
		pic, err := cdf(&ps[i], x)
		if err != nil {
			return nil, err
		}
		if len(pic.charts) == 0 {
			continue
		}
		pic.caption = cmp.Or(caption, pic.caption)
		if len(ps) > 1 {
			pic.file += "-" + FileName(ps[i].model+"-"+ps[i].gpu)
		}
		pictures = append(pictures, pic)
	}
	folders := folderNames(runs)
	for i := range runs {
		t, err := tableIn(runs[i].folder, "steps.csv")
		if err != nil {
			return nil, err
		}
		if t == nil {
			continue
		}
		pic, err := timeline(t)
		if err != nil {
			return nil, err
		}
		r := &runs[i]
		pic.file = "timeline-" + FileName(r.Name)
		if slices.ContainsFunc(runs, func(other Run) bool {
			return other.Name == r.Name && other.source != r.source
		}) {
			pic.file = "timeline-" + FileName(folders[r.source]+"-"+r.Name)
		}
		pic.caption = cmp.Or(caption, captionOf(runs[i:i+1], abscissa{})) + ", "
		if caption != "" {
			pic.caption += label(r.System) + ", "
		}
		pic.caption += loadName(r)
		pictures = append(pictures, pic)
	}
	return pictures, nil
}

// tableIn reads a table of a run's folder; nil where there is none, or where it is empty.
func tableIn(folder, name string) (*table, error) {
	path := filepath.Join(folder, name)
	text, err := files.ReadResult(path)
	if folder == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if bytes.Count(text, []byte("\n")) < 2 {
		return nil, nil
	}
	return parseTable(path, bytes.NewReader(text))
}

// cdfRows is how many x have distributions of their own.
const cdfRows = 3

// cdf draws the share of requests below each TTFT and TBT, all seeds together, a row of
// two panels for the lowest, the middle and the highest x.
func cdf(p *panel, x abscissa) (picture, error) {
	pic := picture{file: "cdf", caption: captionOf(p.runs, x)}
	values := valuesOf(p.runs, x.of)
	if n := len(values); n > cdfRows {
		values = []float64{values[0], values[n/2], values[n-1]}
	}
	for _, at := range values {
		ttft, tbt, err := distribution(p.runs, x, at)
		if err != nil {
			return pic, err
		}
		where := x.name
		if x.varies {
			i := slices.IndexFunc(p.runs, func(r Run) bool { return x.of(&r) == at })
			where = x.value(&p.runs[i])
		}
		for _, one := range []struct {
			label, title string
			curves       []curve
		}{{"TTFT (s)", "time to first token", ttft},
			{"TBT (ms), mean of a request", "time between tokens", tbt}} {
			if len(one.curves) == 0 {
				continue
			}
			title := one.title
			if where != "" {
				title = where + ": " + title
			}
			pic.charts = append(pic.charts, chart{
				title: title, x: one.label, y: "Share of requests",
				curves: one.curves, axis: axis{low: 0, high: 1.04},
			})
		}
	}
	pic.shareAcross()
	return pic, nil
}

// shareAcross gives charts of one x one axis of it, so that they can be compared.
func (p *picture) shareAcross() {
	of := map[string][]curve{}
	for _, c := range p.charts {
		of[c.x] = append(of[c.x], c.curves...)
	}
	for i := range p.charts {
		p.charts[i].across = acrossOf(of[p.charts[i].x])
	}
}

// value writes the x of a run with its name.
func (x *abscissa) value(r *Run) string {
	if x.key == "" {
		return loadName(r)
	}
	return setting(x.key, x.of(r))
}

// acrossOf spans curves of shares: a logarithmic axis where they are far apart.
func acrossOf(all []curve) *axis {
	s := spanOf(all, abscissae)
	if s.low > 0 && s.high > 8*s.low {
		return &axis{s.low / 1.15, s.high * 1.15, true}
	}
	return &axis{math.Min(0, s.low), math.Max(s.high*1.02, 1e-9), false}
}

// distribution collects the requests that each series served at one x.
func distribution(runs []Run, x abscissa, at float64) (ttft, tbt []curve, err error) {
	firsts, gaps := map[string]*thinned[float64]{}, map[string]*thinned[float64]{}
	var series []string
	for i := range runs {
		r := &runs[i]
		if x.of(r) != at {
			continue
		}
		name := bySystem(r)
		series = append(series, name)
		if firsts[name] == nil {
			firsts[name], gaps[name] = sampled[float64](mostSampled), sampled[float64](mostSampled)
		}
		found, err := eachRow(r.folder, "requests.csv", func(t *table) {
			if t.text(0, "first_token_s") == "" || t.text(0, "last_token_s") == "" {
				return // not served
			}
			first, last := t.number(0, "first_token_s"), t.number(0, "last_token_s")
			firsts[name].add(first - t.number(0, "arrival_s"))
			if tokens := t.number(0, "output_tokens"); tokens > 1 {
				gaps[name].add(1e3 * (last - first) / (tokens - 1))
			}
		})
		if !found || err != nil {
			return nil, nil, err
		}
	}
	for _, name := range unique(series) {
		if len(firsts[name].values) > 0 {
			ttft = append(ttft, cumulative(name, firsts[name].values))
		}
		if len(gaps[name].values) > 0 {
			tbt = append(tbt, cumulative(name, gaps[name].values))
		}
	}
	return ttft, tbt, nil
}

// mostSampled is how many values a distribution is drawn of at most: a share of them is that of all
// within some 0.2 %.
const mostSampled = 1 << 17

// timelineBins is how many spans of time a time line has at most.
const timelineBins = 400

// line is one line of a time line: what a step has of it.
type line struct {
	name string
	of   func(row int) float64
	held bool // between steps, as memory is
}

// timeline draws queue, batch and what else the steps of a run have over virtual time:
// means over equal spans of it.
func timeline(t *table) (picture, error) {
	n := len(t.rows)
	start, length := make([]float64, n), make([]float64, n)
	for row := range t.rows {
		start[row], length[row] = t.number(row, "start_s"), t.number(row, "elapsed_s")
	}
	pic := picture{looks: map[string]look{}, wide: 1.7}
	for _, g := range linesOf(t) {
		c := chart{title: g.title, y: g.unit, x: "Time (s)", low: true}
		for _, l := range g.lines {
			c.curves = append(c.curves, binned(l, start, length))
		}
		c.axis = linear(spanOf(c.curves, means))
		c.across = &axis{math.Min(0, start[0]), start[n-1] + length[n-1], false}
		pic.charts = append(pic.charts, c)
	}
	for i := range pic.charts[:len(pic.charts)-1] {
		pic.charts[i].x = ""
	}
	return pic, t.err
}

// binned is the mean of a line in each span of time, weighted by the steps' times.
func binned(l line, start, length []float64) curve {
	n := len(start)
	from, to := start[0], start[n-1]+length[n-1]
	bins := min(timelineBins, max(1, n))
	width := (to - from) / float64(bins)
	sum, time := make([]float64, bins), make([]float64, bins)
	last := make([]float64, bins)
	for row := range start {
		v, at, end := l.of(row), start[row], start[row]+length[row]
		bin := 0
		if width > 0 {
			bin = min(int((at-from)/width), bins-1)
		}
		for ; at < end; bin++ {
			next := end
			if bin < bins-1 {
				next = math.Min(end, from+float64(bin+1)*width)
			}
			if next > at {
				sum[bin] += v * (next - at)
				time[bin] += next - at
				last[bin], at = v, next
			}
		}
	}
	c := curve{series: l.name, bare: true}
	held := 0.0
	for bin := range sum {
		v := sum[bin] / math.Max(width, 1e-12)
		switch {
		case l.held && time[bin] > 0:
			v = sum[bin] / time[bin]
			held = last[bin]
		case l.held:
			v = held
		}
		c.points = append(c.points, point{x: from + (float64(bin)+0.5)*width, runs: 1, mean: v,
			low: v, high: v})
	}
	return c
}

// lines are drawn in one panel.
type lines struct {
	title, unit string
	lines       []line
}

// unused says whether the lines are zero in all rows, as those of a link that nothing crosses.
func (g *lines) unused(rows int) bool {
	for _, l := range g.lines {
		for row := range rows {
			if l.of(row) != 0 {
				return false
			}
		}
	}
	return true
}

// linesOf are the panels that the columns of a table of steps have.
func linesOf(t *table) []lines {
	column := func(name string) func(int) float64 {
		return func(row int) float64 { return t.number(row, name) }
	}
	all := []lines{
		{"Queue", "Requests", []line{{"waiting", column("waiting"), false}}},
		{"Batch", "Requests", []line{{"decodes", column("decodes"), false},
			{"prefills", column("prefills"), false}}},
	}
	var more []lines
	used := tiersUsed(t)
	for _, name := range t.header {
		title, words, unit, scale := memoryColumn(name)
		of, each := column(name), unit == "GB/s"
		if busy, ok := busyColumn(name); ok {
			title, words, unit, scale, each = "Busy", busy, "Share (%)", 100, true
		}
		if title == "" {
			continue
		}
		l := line{words, func(row int) float64 {
			if each { // second of a step
				return scale * of(row) / math.Max(t.number(row, "elapsed_s"), 1e-9)
			}
			return scale * of(row)
		}, !each}
		i := slices.IndexFunc(more, func(g lines) bool { return g.title == title && g.unit == unit })
		if i < 0 {
			i = len(more)
			more = append(more, lines{title: title, unit: unit})
		}
		if tier := tierOf(name); tier == "" || used[tier] {
			more[i].lines = append(more[i].lines, l)
		}
	}
	slices.SortStableFunc(more, func(a, b lines) int { return cmp.Compare(a.title, b.title) })
	link := slices.ContainsFunc(more, func(g lines) bool { return g.title == "Link" })
	more = slices.DeleteFunc(more, func(g lines) bool { return g.unused(len(t.rows)) })
	moved := lines{"KV blocks moved", "Blocks a step", nil}
	for _, name := range []string{"blocks_loaded", "blocks_saved"} {
		if slices.Contains(t.header, name) {
			moved.lines = append(moved.lines, line{name[len("blocks_"):], column(name), false})
		}
	}
	if len(moved.lines) > 0 && !link { // which says the same
		more = append(more, moved)
	}
	return append(all, more...)
}

// shareSteps is how many equal steps the share of requests is drawn in at most.
const shareSteps = 100

// cumulative is the empirical distribution of values: how many of them are at or
// below each.
func cumulative(series string, values []float64) curve {
	slices.Sort(values)
	c := curve{series: series, bare: true}
	n := len(values)
	steps := min(n, shareSteps)
	for i := 1; i <= steps; i++ {
		at := (i*n + steps - 1) / steps // requests
		share := float64(at) / float64(n)
		c.points = append(c.points, point{x: values[at-1], runs: 1, mean: share, low: share, high: share})
	}
	first := c.points[0]
	c.points = slices.Insert(c.points, 0, point{x: first.x, runs: 1})
	return c
}
