package answers

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Runs are finished runs of an experiment.
type Runs struct {
	Name     string   // of the experiment or its folder
	Asked    []string // what was run, a sentence each
	Sums     []metrics.Summary
	Settings []map[string]any // values of a sweep's axes for each run; nil without axes
	Systems  []sim.Spec
	Unit     string // of the rates, such as requests/s
	// Folders are the folders of the runs, with their requests; "" or nil if there is none.
	Folders []string
	// DefaultTBT is set if the bound on TBT is the default one.
	DefaultTBT bool
}

// defaultSteps is the default of slo.tbt_factor.
const defaultSteps = 25

// DefaultTBT reports whether the bound on TBT of all runs is the default multiple of a decode step.
func DefaultTBT(variants ...[]config.Point) bool {
	for _, p := range slices.Concat(variants...) {
		if p.SLO.TBTS != 0 || p.SLO.TBTFactor != defaultSteps {
			return false
		}
	}
	return true
}

// boundTBT is the bound on TBT in a service level.
var boundTBT = regexp.MustCompile(`TBT <= [^ ]+ s`)

// Doc returns the document of runs: one row per system and load, with the mean over seeds.
// Explanatory tables are folded.
func (r *Runs) Doc() *doc.Doc {
	d := &doc.Doc{Title: r.Name + ": simulated runs", Lead: r.Asked}
	if r.Settings == nil {
		r.Settings = make([]map[string]any, len(r.Sums))
	} else {
		d.Title = r.Name + ": sweep"
	}
	r.Unit = Short(r.Unit)
	axes := r.axes()
	rows := r.rows(axes)
	d.Answers = r.sustained(axes, rows)
	d.Warnings = r.warnings()
	head := r.head()
	for _, t := range []doc.Table{r.results(head, rows),
		metricsTable("Inside the server", head, rows, "delay_mean", "batch", "gpu", "h2d", "d2h",
			"recall"),
		metricsTable("KV cache", head, rows, "loads", "hits", "hbm", "hbm_peak", "dram"),
		metricsTable("Prefix cache", head, rows, "prefix_hits", "prefix_dram", "prefix_ssd"),
		latencies(head, rows), metricsTable("Rates", head, rows, "requests", "good", "good_share",
			"input", "throughput", "total"), differences(head, rows)} {
		addTable(d, t)
	}
	return d
}

// Short abbreviates a unit for columns.
func Short(unit string) string {
	return strings.NewReplacer("requests", "req", "tokens", "tok").Replace(unit)
}

// head returns the columns that identify a row.
func (r *Runs) head() []doc.Column {
	return []doc.Column{{Name: r.Unit, Number: true}, {Name: "system"}}
}

// runTable is a table whose rows begin with the load and the system of runs.
type runTable struct {
	doc.Table
	last *runRow
}

// add adds a row.
func (t *runTable) add(r *runRow, cells ...doc.Cell) {
	t.Rows = append(t.Rows, doc.Row{Cells: append([]doc.Cell{doc.Text(r.load.String()),
		doc.Text(r.name)}, cells...),
		Ruled: t.last != nil && r.group != t.last.group})
	t.last = r
}

// columnOf returns the column of a metric.
func columnOf(m *metrics.Metric) doc.Column {
	return doc.Column{Name: m.Name, Unit: strings.TrimSpace(statOf(m) + " " + Short(m.Unit)),
		Number: true}
}

// results returns the table that is shown first.
func (r *Runs) results(head []doc.Column, rows []runRow) doc.Table {
	t := runTable{Table: doc.Table{Title: "Results", Key: len(head), Columns: slices.Clone(head)}}
	shown := metrics.AllOf("ttft_mean", "ttft_p99", "tbt_mean", "tbt_p99", "throughput", "served",
		"preempted", "recomputed")
	const state = 5 // the column before what few runs have
	for i := range shown {
		t.Columns = append(t.Columns, columnOf(&shown[i]))
	}
	t.Columns = slices.Insert(t.Columns, len(head)+state, doc.Column{Name: "SLO"})
	starred, partial := false, false
	for i := range rows {
		x, cells := &rows[i], []doc.Cell(nil)
		for j := range shown {
			m := &shown[j]
			c := x.cell(m)
			switch {
			case m.Key == "served" && !x.rejects(),
				(m.Key == "preempted" || m.Key == "recomputed") && !x.preempts():
				c = doc.Cell{} // a column without information is not shown
			case m.Key == "served":
				c = doc.As(*x.share().Value, x.share().String())
			case (m.Key == "ttft_mean" || m.Key == "throughput") && c.Value != nil:
				c.Mark = mark(rows, x, m)
				starred, partial = starred || c.Mark == star, partial || c.Mark == survivor
			}
			cells = append(cells, c)
		}
		t.add(x, slices.Insert(cells, state, doc.Text(x.state()))...)
	}
	var signs []string
	if starred {
		signs = append(signs, "* best at its load, within 1 %")
	}
	if slices.ContainsFunc(rows, func(x runRow) bool { return x.load.clients > 0 }) {
		signs = append(signs, "c=N: a closed loop of N clients, not "+r.Unit)
	}
	if slices.ContainsFunc(r.Sums, func(s metrics.Summary) bool { return s.Replicas > 1 }) {
		signs = append(signs, "xN: a fleet of N replicas")
	}
	if partial {
		signs = append(signs,
			"† of the requests served, not compared, because others were rejected")
	}
	most := 0
	for i := range rows {
		most = max(most, len(rows[i].runs))
	}
	if most > 1 {
		signs = append(signs, fmt.Sprintf("means over %d seeds", most))
	}
	if len(signs) > 0 {
		t.Legend = append(t.Legend, strings.Join(signs, "; "))
	}
	if slices.ContainsFunc(rows, aboveP99) {
		t.Legend = append(t.Legend, "a mean above its P99: fewer than 1 % of the values are so large "+
			"that they raise the mean")
	}
	t.Legend = append(t.Legend, r.Levels()...)
	if slices.ContainsFunc(r.Sums, func(s metrics.Summary) bool {
		return s.RequestGoodput != nil && s.GoodShare == nil // not each request is judged
	}) {
		t.Legend = append(t.Legend, "the column SLO judges these statistics of a run, not each request")
	}
	return t.Table
}

// aboveP99 reports whether the mean of a latency is above its P99.
func aboveP99(r runRow) bool {
	return slices.ContainsFunc([]string{"ttft", "tbt"}, func(latency string) bool {
		of := metrics.AllOf(latency+"_mean", latency+"_p99")
		mean, known := r.mean(&of[0])
		p99, also := r.mean(&of[1])
		return known && also && mean > p99
	})
}

// share returns the share of served requests in %: never 100 if one was rejected.
func (r *runRow) share() doc.Cell {
	served, all := 0, 0
	for _, s := range r.runs {
		served, all = served+s.Completed, all+s.Completed+s.Rejected
	}
	return doc.Number(min(99.9, 100*float64(served)/float64(max(1, all))))
}

// Levels lists the service levels of the runs.
func (r *Runs) Levels() (lines []string) {
	bound := where(r.Sums, func(s *metrics.Summary) bool { return s.SLO != "" })
	all := distinct(bound, func(s *metrics.Summary) string { return s.SLO })
	words := func(level string) string {
		if !r.DefaultTBT {
			return level
		}
		return boundTBT.ReplaceAllString(level, fmt.Sprintf("$0 (default: %d unloaded decode steps; set "+
			"slo.tbt_s)", defaultSteps))
	}
	switch {
	case len(all) == 0:
		return nil
	case len(all) > 3: // cards and models have bounds of their own
		return []string{fmt.Sprintf("SLO: %s; %d others are in summary.json", words(all[0]), len(all)-1)}
	case len(all) == 1:
		return []string{"SLO: " + words(all[0])}
	}
	for _, level := range all {
		systems := distinct(where(bound, func(s *metrics.Summary) bool { return s.SLO == level }),
			func(s *metrics.Summary) string { return s.System })
		lines = append(lines, fmt.Sprintf("SLO of %s: %s", strings.Join(systems, ", "), words(level)))
	}
	return append(lines, "systems have different SLOs, so \"met\" is not the same for all; --set "+
		"slo.tbt_s=SECONDS sets one for all")
}

// metricsTable has one column per metric that a run has, and no row if no run has any.
func metricsTable(title string, head []doc.Column, rows []runRow, keys ...string) doc.Table {
	t := runTable{Table: doc.Table{Title: title, Folded: true, Key: len(head),
		Columns: slices.Clone(head)}}
	var known []metrics.Metric
	for _, m := range metrics.AllOf(keys...) {
		if slices.ContainsFunc(rows, func(x runRow) bool { _, ok := x.mean(&m); return ok }) {
			known, t.Columns = append(known, m), append(t.Columns, columnOf(&m))
		}
	}
	for i := range rows {
		var cells []doc.Cell
		for j := range known {
			cells = append(cells, rows[i].cell(&known[j]))
		}
		if len(known) > 0 {
			t.add(&rows[i], cells...)
		}
	}
	return t.Table
}

// latencies lists all statistics of each latency.
func latencies(head []doc.Column, rows []runRow) doc.Table {
	t := runTable{Table: doc.Table{Title: "Latencies", Folded: true, Key: len(head) + 1,
		Columns: append(slices.Clone(head), doc.Column{Name: "latency"})}}
	for _, stat := range metrics.StatNames {
		t.Columns = append(t.Columns, doc.Column{Name: strings.Replace(stat, "p", "P", 1), Number: true})
	}
	for i := range rows {
		for _, m := range metrics.All() {
			if m.Stat == metrics.StatNames[0] {
				t.add(&rows[i], doc.Text(m.Name+", "+m.Unit))
			}
			if m.Stat != "" {
				row := &t.Rows[len(t.Rows)-1]
				row.Cells = append(row.Cells, rows[i].cell(&m))
			}
		}
	}
	for i := range t.Rows {
		t.Rows[i].Ruled = i > 0 && i%5 == 0
	}
	return t.Table
}

// differences compares each system with the first one at its load, seed by seed, because all
// systems have the same arrivals per seed.
func differences(head []doc.Column, rows []runRow) doc.Table {
	t := runTable{Table: doc.Table{Title: "Differences between systems", Folded: true,
		Key:  len(head) + 2,
		Note: "Means of the differences seed by seed, with their 95 % intervals (Student's t).",
		Columns: append(slices.Clone(head), doc.Columns("against", "metric", ">difference", ">from",
			">to", ">seeds")...)}}
	first := 0
	for i := range rows {
		if !rows[i].with(&rows[first]) {
			first = i
		}
		for _, m := range metrics.AllOf("ttft_mean", "tbt_mean", "throughput") {
			pairs := paired(&rows[first], &rows[i], &m)
			if i == first || len(pairs) < doc.Fewest {
				continue
			}
			mean, half := stats.Mean(pairs, 0.95)
			t.add(&rows[i], doc.Text(rows[first].system), doc.Text(m.Label()), doc.Number(mean),
				doc.Number(mean-half), doc.Number(mean+half), doc.Count(len(pairs)))
		}
	}
	return t.Table
}

// paired lists the differences of a metric, b minus a, for each seed in both rows.
func paired(a, b *runRow, m *metrics.Metric) (differences []float64) {
	for _, s := range b.runs {
		i := slices.IndexFunc(a.runs, func(o *metrics.Summary) bool { return o.Seed == s.Seed })
		if i < 0 {
			continue
		}
		x, known := m.Shown(a.runs[i])
		if y, also := m.Shown(s); known && also {
			differences = append(differences, y-x)
		}
	}
	return differences
}

// warnings returns the grouped warnings of the runs.
func (r *Runs) warnings() []warn.Warning {
	all := engineWarnings(r.Systems)
	for i := range r.Sums {
		all = append(all, said(r.Sums[i].Warnings, strconv.Itoa(i))...)
	}
	return named(all, func(of []string) string {
		if len(r.Sums) == 1 {
			return ""
		}
		return r.which(of)
	})
}

// which describes runs, given by their numbers, as the rows of tables do: by system, axis settings
// and load.
func (r *Runs) which(numbers []string) string {
	if len(numbers) == len(r.Sums) {
		return "all runs"
	}
	all := r.rows(r.axes())
	var rows []runRow
	for _, number := range numbers {
		i, _ := strconv.Atoi(number)
		of := func(x *runRow) bool { return slices.Contains(x.runs, &r.Sums[i]) }
		rows = append(rows, where(all, of)...)
	}
	names := distinct(rows, func(x *runRow) string { return x.name })
	for i, name := range names {
		loads := distinct(where(rows, func(x *runRow) bool { return x.name == name }),
			func(x *runRow) string { return x.load.String() })
		names[i] += " at " + strings.Join(loads, ", ")
	}
	return strings.Join(names, "; ")
}
