package answers

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Goodputs returns the document of a search for the largest rate of each candidate.
func Goodputs(name string, found []capacity.Goodput) *doc.Doc {
	d := &doc.Doc{Title: name + ": largest rate within the service level"}
	var all []warn.Warning
	sums := make([]metrics.Summary, len(found))
	for i := range found {
		g := &found[i]
		sums[i] = metrics.Summary{System: g.Name, SLO: g.SLO}
		all = append(all, said(g.Warnings, g.Name)...)
	}
	d.Lead = distinct(found, func(g *capacity.Goodput) string {
		text := fmt.Sprintf("%s on %s, %d requests", g.Model, g.GPU, g.Requests)
		return cmp.Or(g.Asked, text) + "; " + listSeeds(g.Seeds) + " at each rate."
	})
	d.Warnings = Warnings(all, len(found))
	d.Answers = sustainedOf(found)
	d.Figures = []doc.Figure{goodputFigure(found, d.Lead)}
	t := goodputTable(found)
	t.Legend = (&Runs{Sums: sums}).Levels()
	d.Tables = append(d.Tables, t)
	return d
}

// unitOf returns the unit of a goodput; requests/s in old results, which do not record it.
func unitOf(g *capacity.Goodput) string { return Short(cmp.Or(g.Unit, "requests/s")) }

// units lists the units of all goodputs.
func units(found []capacity.Goodput) string { return strings.Join(distinct(found, unitOf), " or ") }

// mostSustained is the maximum number of candidates that the sentence of a plan names.
const mostSustained = 4

// sustainedOf returns a sentence that ranks the candidates, such as "sparseserve serves 0.500 req/s
// within the SLO; vllm 0.119."
func sustainedOf(found []capacity.Goodput) []string {
	ranked := make([]*capacity.Goodput, len(found))
	for i := range found {
		ranked[i] = &found[i]
	}
	slices.SortStableFunc(ranked, func(a, b *capacity.Goodput) int {
		return cmp.Compare(b.Goodput, a.Goodput)
	})
	var words []string
	for i, g := range ranked {
		text := digits(g.Goodput)
		switch {
		case i == mostSustained && len(ranked) > i+1:
			words = append(words, fmt.Sprintf("%d others serve no more than that", len(ranked)-i))
			return []string{strings.Join(words, "; ") + "."}
		case g.Goodput == 0:
			text = "meets it at no rate that was tried"
			if i == 0 {
				text = "meets the SLO at no rate that was tried"
			}
		case i == 0:
			text = "serves " + text + " " + unitOf(g) + " within the SLO"
		case unitOf(g) != unitOf(ranked[0]):
			text += " " + unitOf(g)
		}
		words = append(words, g.Name+" "+text)
	}
	return []string{strings.Join(words, "; ") + "."}
}

// goodputFigure draws the candidates as bars.
func goodputFigure(found []capacity.Goodput, asked []string) doc.Figure {
	c := &doc.Chart{Y: "goodput (" + units(found) + ")"}
	for i := range found {
		g := &found[i]
		s := doc.Sample{N: len(g.Seeds), Low: g.Low, High: g.High}
		if s.N < doc.Fewest {
			s.Runs = g.SeedGoodputs
		}
		c.Bars = append(c.Bars, doc.Bar{Name: g.Name, Sample: s, Parts: []doc.Part{{
			Name: "largest rate within the SLO", Color: "#0072b2", Value: g.Goodput, Sample: s}}})
	}
	f := doc.Figure{Name: "goodput", Title: "Goodput", Charts: []*doc.Chart{c}}
	f.Caption = strings.TrimSpace(strings.Join(asked, " ") + " The largest rate below every " +
		"failure, by the mean over seeds. " + f.Spread("seeds"))
	return f
}

// boundName replaces names of bounds with words.
var boundName = strings.NewReplacer("ttft", "TTFT", "tbt", "TBT", "tpot", "TPOT", "e2e",
	"end to end")

func goodputTable(found []capacity.Goodput) doc.Table {
	t := doc.Table{Title: "Candidates", Columns: doc.Columns("candidate", ">goodput|"+units(found),
		fmt.Sprintf(">interval|%g %%", 100*capacity.GoodputConfidence), "limited by", "has of its bounds",
		">without a bound|%", ">rejected|%", ">output|tok/s"),
		Note: "goodput: the largest rate below every failure, by the mean over seeds; the interval is " +
			"Student's t over each seed's own"}
	for i := range found {
		g := &found[i]
		interval, missed := "-", doc.Cell{}
		if g.Low != nil && g.High != nil {
			interval = digits(*g.Low) + " to " + digits(*g.High)
		}
		if g.MissedShare > 0 {
			missed = doc.Number(100 * g.MissedShare)
		}
		var bounds []string
		for _, b := range g.Bounds {
			bounds = append(bounds, fmt.Sprintf("%s %s %s of %s s", strings.Replace(b.Stat, "p", "P", 1),
				boundName.Replace(b.Name), digits(b.ValueS), digits(b.Limit)))
		}
		t.Add(g.Name, g.Goodput, interval, g.LimitedBy, strings.Join(bounds, "; "), missed,
			100*g.RejectedShare, g.ThroughputTokS)
	}
	return t
}

// readGoodput builds the document of a search for goodput.
func readGoodput(dir string) (*doc.Doc, error) {
	var found []capacity.Goodput
	if err := readJSON(dir, capacity.GoodputFile, &found); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no candidate", filepath.Join(dir, capacity.GoodputFile))
	}
	_, folders, _, err := runFolders(dir)
	if err != nil {
		return nil, err
	}
	return onMachines(Goodputs(nameOf(dir), found), folders, nil)
}
