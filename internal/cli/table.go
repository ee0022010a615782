package cli

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// rateUnit is what a workload's rate counts, as tables have it.
func rateUnit(w *traces.Spec) string { return shortUnit(capacity.RateUnit(w)) }

func shortUnit(unit string) string { return strings.Replace(unit, "requests", "req", 1) }

// printTable prints one row for each system and load, whose rates have the unit, and marks the best
// TTFT and throughput at each.
func printTable(w io.Writer, sums []sim.Summary, unit string) {
	rows := rowsOf(sums)
	t := newTable(w, 11, 10, 12, 9, 7, 5, 13)
	t.AppendHeader(table.Row{unit, "system", "served", "TTFT", "TTFT", "TBT", "TBT", "output",
		"sched.", "batch", "loads", "hits", "prefix", "preempted", "recomputed", "SLO", "queue"})
	t.AppendHeader(table.Row{"", "", "%", "mean s", "P99 s", "mean ms", "P99 ms", "tok/s", "delay s",
		"", "/step", "%", "hits %", "times", "% of time", "", ""})
	cached := slices.ContainsFunc(sums, func(s sim.Summary) bool { return s.PrefixCache != nil })
	starred, partial := false, false
	for i := range rows {
		r := &rows[i]
		if i > 0 && rows[i-1].load != r.load {
			t.AppendSeparator()
		}
		rate := ""
		if i == 0 || rows[i-1].load != r.load {
			rate = r.load.String()
		}
		s := &r.sum
		ofServed := func(v float64) string { // of requests that were served
			if s.Completed == 0 {
				return "-"
			}
			return digits(v)
		}
		blocks, hits := "-", "-"
		if s.HitRatio > 0 || s.BlocksLoadedPerStep > 0 {
			blocks, hits = digits(s.BlocksLoadedPerStep), strconv.FormatFloat(100*s.HitRatio, 'f', 2, 64)
		}
		prefixes := "" // of an empty column, which is not shown
		if cached {
			prefixes = r.mean(prefixHits)
		}
		preempted, again := "", ""
		if s.Preempted > 0 {
			preempted = strconv.Itoa(s.Preempted / r.runs)
			again = digits(100 * s.RecomputedShare)
		}
		served := ""
		if s.Rejected > 0 {
			served, partial = strconv.FormatFloat(
				min(99.9, 100*float64(s.Completed)/float64(s.Completed+s.Rejected)), 'f', 1, 64), true
		}
		ttft := mark(rows, r, func(s *sim.Summary) float64 { return s.TTFT.Mean })
		tokens := mark(rows, r, func(s *sim.Summary) float64 { return -s.ThroughputTokS })
		starred = starred || ttft == star || tokens == star
		t.AppendRow(table.Row{rate, r.system, served,
			ofServed(s.TTFT.Mean) + ttft,
			ofServed(s.TTFT.P99), ofServed(1e3 * s.TBT.Mean), ofServed(1e3 * s.TBT.P99),
			ofServed(s.ThroughputTokS) + tokens,
			ofServed(s.QueueDelay.Mean), digits(s.BatchMean), blocks, hits, prefixes,
			preempted, again, sloLabel(r), r.queue})
	}
	t.SetColumnConfigs(append(rightAligned(3, 15),
		table.ColumnConfig{Number: 1, Align: text.AlignRight}))
	t.Render()
	var legend []string
	if starred {
		legend = append(legend, "* best at its rate, within 1 %")
	}
	if most(rows, func(r *row) int { return r.load.clients }) > 0 {
		legend = append(legend, "c=N: a closed loop of N clients, not "+unit)
	}
	if slices.ContainsFunc(sums, func(s sim.Summary) bool { return s.Replicas > 1 }) {
		legend = append(legend, "xN: a fleet of N replicas")
	}
	if partial {
		legend = append(legend, "† of the requests served, not compared: others were rejected")
	}
	if seeds := most(rows, func(r *row) int { return r.runs }); seeds > 1 {
		legend = append(legend, fmt.Sprintf("means over %d seeds", seeds))
	}
	if len(legend) > 0 {
		fmt.Fprintln(w, strings.Join(legend, "; "))
	}
	printSLO(w, sums)
}

// printSLO names the service levels that the runs were held to.
func printSLO(w io.Writer, sums []sim.Summary) {
	var all []string
	of := map[string][]string{} // level -> systems
	for i := range sums {
		s := &sums[i]
		if s.SLO == "" {
			continue
		}
		if !slices.Contains(all, s.SLO) {
			all = append(all, s.SLO)
		}
		if !slices.Contains(of[s.SLO], s.System) {
			of[s.SLO] = append(of[s.SLO], s.System)
		}
	}
	switch {
	case len(all) == 0:
	case len(all) > 3: // cards and models have bounds of their own
		fmt.Fprintf(w, "SLO: %s; and %d others (summary.json)\n", all[0], len(all)-1)
	case len(all) == 1:
		fmt.Fprintf(w, "SLO: %s\n", all[0])
	default:
		for _, level := range all {
			fmt.Fprintf(w, "SLO of %s: %s\n", strings.Join(of[level], ", "), level)
		}
		fmt.Fprintln(w, "Systems have different SLOs, so \"met\" is not the same for all; --set "+
			"slo.tbt_s=SECONDS sets one for all")
	}
}

// newTable is the look of every table: columns of numbers to the right. On a terminal that is too
// narrow for it, columns of the numbers given are left out, in this order, or from the last.
func newTable(w io.Writer, secondary ...int) table.Writer {
	t := &fitted{Writer: table.NewWriter(), w: w, columns: terminalColumns(w), secondary: secondary}
	style := table.StyleRounded
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	t.SuppressEmptyColumns()
	return t
}

const (
	star     = "*"
	survivor = "†"
)

// mark returns the star of a row that is best at its rate, within 1 %, and a
// space otherwise. Where all are as good, none has a star. Lower values are
// better. A row of which requests were rejected is compared with none: what is
// left is not the same load.
func mark(rows []row, r *row, value func(*sim.Summary) float64) string {
	if r.sum.Rejected > 0 {
		return survivor
	}
	best, worst := math.Inf(1), math.Inf(-1)
	for i := range rows {
		if rows[i].load == r.load && rows[i].sum.Rejected == 0 {
			v := value(&rows[i].sum)
			best, worst = math.Min(best, v), math.Max(worst, v)
		}
	}
	if good := best + 0.01*math.Abs(best); worst > good && value(&r.sum) <= good {
		return star
	}
	return " "
}

// sloLabel says how many of a row's runs kept the service level, of those of which it is known.
func sloLabel(r *row) string {
	switch {
	case r.judged == 0:
		return "-"
	case r.met == r.runs:
		return "met"
	case r.met == 0 && r.judged == r.runs:
		return "no"
	}
	return fmt.Sprintf("%d/%d", r.met, r.judged)
}

// digits prints a number of a table.
func digits(v float64) string { return stats.Digits(v) }

func most(rows []row, of func(*row) int) int {
	m := 0
	for i := range rows {
		m = max(m, of(&rows[i]))
	}
	return m
}
