package answers

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
)

// mostTimelines is how many runs a document shows step by step, mostRows how many rows of a table
// it shows unasked.
const (
	mostTimelines = 4
	mostRows      = 60
)

// overLoads is the title of the pictures over what varies.
const overLoads = "Latency and throughput"

// titles are of the pictures of runs, by the beginning of their names.
var titles = []struct{ name, title string }{
	{"ttft", overLoads}, {"throughput", overLoads}, {"tbt", overLoads}, {"goodput", overLoads},
	{"run", "Over time"}, {"time", "Where the time of a step went"}, {"cdf", "Distributions"},
	{"distributions", "Distributions, measured and simulated"}, {"error", "Error over time"},
}

// addFigures adds pictures, those of one title together. What all captions begin with is
// left out, because the lead says it.
// Time lines come last, and only the first few runs have theirs.
func (p *builder) addFigures(all []doc.Figure) {
	if len(all) == 0 {
		return
	}
	lead, _, _ := strings.Cut(all[0].Caption, ". ")
	lead = strings.TrimSuffix(lead, ".")
	if len(p.Lead) == 0 {
		p.Lead = append(p.Lead, lead+".")
	}
	timelines := 0
	for _, f := range all {
		f.Title = f.Name
		f.Caption = strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(f.Caption, lead), "."), " ")
		for _, t := range titles {
			if f.Name == t.name || strings.HasPrefix(f.Name, t.name+"-") {
				f.Title = t.title
				break
			}
		}
		if run, ok := strings.CutPrefix(f.Name, "timeline-"); ok {
			if timelines++; timelines > mostTimelines {
				continue
			}
			f.Title = "Over time: " + run
		}
		if n := len(p.Figures); n > 0 && p.Figures[n-1].Title == f.Title {
			p.Figures[n-1].Charts = append(p.Figures[n-1].Charts, f.Charts...)
			continue
		}
		p.Figures = append(p.Figures, f)
	}
	if timelines > mostTimelines {
		p.Figures[len(p.Figures)-1].Caption += fmt.Sprintf(" The time lines of %d more runs are "+
			"pictures in the folder.", timelines-mostTimelines)
	}
}
