package cli

import (
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/sim"
)

// latencies are the distributions of a run, each in a unit that suits it.
var latencies = []struct {
	title string
	scale float64
	of    func(*sim.Summary) *sim.Stats
}{
	{"TTFT, s", 1, func(s *sim.Summary) *sim.Stats { return &s.TTFT }},
	{"TBT, ms", 1e3, func(s *sim.Summary) *sim.Stats { return &s.TBT }},
	{"TPOT, ms", 1e3, func(s *sim.Summary) *sim.Stats { return &s.TPOT }},
	{"end to end, s", 1, func(s *sim.Summary) *sim.Stats { return &s.E2E }},
	{"sched. delay, s", 1, func(s *sim.Summary) *sim.Stats { return &s.QueueDelay }},
}

// rates are what a run does in a second, and the shares of what it uses; nil where that is not
// known.
var rates = []struct {
	title, unit string
	of          func(*sim.Summary) *float64
}{
	{"served", "req/s", func(s *sim.Summary) *float64 { return &s.RequestThroughput }},
	{"in SLO", "req/s", func(s *sim.Summary) *float64 { return s.RequestGoodput }},
	{"input", "tok/s", func(s *sim.Summary) *float64 { return &s.PromptTokS }},
	{"output", "tok/s", func(s *sim.Summary) *float64 { return &s.ThroughputTokS }},
	{"total", "tok/s", func(s *sim.Summary) *float64 { return &s.TotalTokS }},
	{"HBM", "%", func(s *sim.Summary) *float64 { return meanUse(s.HBMUse) }},
	{"HBM", "peak %", func(s *sim.Summary) *float64 { return peakUse(s.HBMUse) }},
	{"DRAM", "%", func(s *sim.Summary) *float64 { return meanUse(s.DRAMUse) }},
	{"GPU", "busy %", func(s *sim.Summary) *float64 { return meanUse(s.GPUUse) }},
	{"H2D", "busy %", func(s *sim.Summary) *float64 { return meanUse(s.H2DUse) }},
	{"D2H", "busy %", func(s *sim.Summary) *float64 { return meanUse(s.D2HUse) }},
	{"cached", "prompt %", prefixHits},
	{"DRAM", "prompt %", func(s *sim.Summary) *float64 {
		return hitShare(s, func(p *sim.PrefixStats) int64 { return p.DRAM.HitTokens })
	}},
	{"SSD", "prompt %", func(s *sim.Summary) *float64 {
		return hitShare(s, func(p *sim.PrefixStats) int64 { return p.SSD.HitTokens })
	}},
	{"recall", "proxy %", func(s *sim.Summary) *float64 {
		if s.RecallProxy == nil {
			return nil
		}
		percent := 100 * s.RecallProxy.Mean
		return &percent
	}},
}

func prefixHits(s *sim.Summary) *float64 {
	return hitShare(s, func(p *sim.PrefixStats) int64 { return p.HitTokens })
}

// hitShare is the share of the tokens of prompts that a prefix cache had, or a tier of it.
func hitShare(s *sim.Summary, of func(*sim.PrefixStats) int64) *float64 {
	if s.PrefixCache == nil {
		return nil
	}
	percent := 100 * float64(of(s.PrefixCache)) / float64(max(1, s.PrefixCache.PromptTokens))
	return &percent
}

func meanUse(u *sim.Use) *float64 {
	if u == nil {
		return nil
	}
	percent := 100 * u.Mean
	return &percent
}

func peakUse(u *sim.Use) *float64 {
	if u == nil {
		return nil
	}
	percent := 100 * u.Peak
	return &percent
}

// printDetails prints what the table of results has no column for.
func printDetails(w io.Writer, sums []sim.Summary, unit string) {
	rows := rowsOf(sums)
	t := newTable(w)
	t.AppendHeader(table.Row{unit, "system", "", "mean", "P50", "P90", "P95", "P99"})
	for i := range rows {
		r := &rows[i]
		if i > 0 {
			t.AppendSeparator()
		}
		for j, l := range latencies {
			row := table.Row{"", "", l.title}
			if j == 0 {
				row[0], row[1] = r.load.String(), r.system
			}
			for _, name := range sim.StatNames {
				row = append(row, r.mean(func(s *sim.Summary) *float64 {
					v := l.scale * l.of(s).Of(name)
					return &v
				}))
			}
			t.AppendRow(row)
		}
	}
	t.SetColumnConfigs(append(rightAligned(1, 1), rightAligned(4, 8)...))
	t.Render()
	printRates(w, rows, unit)
}

func printRates(w io.Writer, rows []row, unit string) {
	t := newTable(w)
	titles, units := table.Row{unit, "system"}, table.Row{"", ""}
	for _, c := range rates {
		titles, units = append(titles, c.title), append(units, c.unit)
	}
	t.AppendHeader(titles)
	t.AppendHeader(units)
	known := make([]bool, len(rates))
	for i, c := range rates {
		known[i] = slices.ContainsFunc(rows, func(r row) bool { return r.mean(c.of) != "-" })
	}
	for i := range rows {
		r := &rows[i]
		cells := table.Row{r.load.String(), r.system}
		if i > 0 && rows[i-1].load == r.load {
			cells[0] = ""
		} else if i > 0 {
			t.AppendSeparator()
		}
		for i, c := range rates {
			cell := "" // of an empty column, which is not shown
			if known[i] {
				cell = r.mean(c.of)
			}
			cells = append(cells, cell)
		}
		t.AppendRow(cells)
	}
	t.SetColumnConfigs(append(rightAligned(1, 1), rightAligned(3, 2+len(rates))...))
	t.Render()
}

// mean is a figure over the row's runs that served a request, a dash where there is none.
func (r *row) mean(of func(*sim.Summary) *float64) string {
	sum, n := 0.0, 0
	for _, s := range r.runsOf {
		if v := of(s); v != nil && s.Completed > 0 {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return "-"
	}
	return digits(sum / float64(n))
}
