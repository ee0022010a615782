package answers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// candidate is a server whose goodput was looked for.
type candidate struct {
	Name         string    `json:"name"`
	Model        string    `json:"model"`
	GPU          string    `json:"gpu"`
	Seeds        []uint64  `json:"seeds"`
	Requests     int       `json:"requests"`
	Goodput      float64   `json:"goodput"`
	Low          *float64  `json:"low"`
	High         *float64  `json:"high"`
	SeedGoodputs []float64 `json:"seed_goodputs"`
	LimitedBy    string    `json:"limited_by"`
	SLO          string    `json:"slo"`
	Bounds       []struct {
		Name   string  `json:"name"`
		Stat   string  `json:"stat"`
		Limit  float64 `json:"limit_s"`
		ValueS float64 `json:"value_s"`
	} `json:"bounds"`
	RejectedShare  float64        `json:"rejected_share"`
	ThroughputTokS float64        `json:"throughput_tok_s"`
	Runs           int            `json:"runs"`
	Warnings       []warn.Warning `json:"warnings"`
}

// readPlan makes the page of a search for goodput.
func readPlan(dir string) (*builder, error) {
	var found []candidate
	if err := readJSON(dir, "plan.json", &found); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: no candidate", filepath.Join(dir, "plan.json"))
	}
	p := &builder{Doc: doc.Doc{Title: nameOf(dir) + ": plan"}}
	var warnings []warn.Said
	var levels, where []string
	for i := range found {
		c := &found[i]
		for _, w := range c.Warnings {
			warnings = append(warnings, warn.Said{Warning: w, Of: c.Name})
		}
		if !slices.Contains(levels, c.SLO) {
			levels = append(levels, c.SLO)
		}
		if on := c.Model + " on " + c.GPU; !slices.Contains(where, on) {
			where = append(where, on)
		}
	}
	p.warn(nil, warnings, len(found))
	p.Lead = append(p.Lead, strings.Join(where, "; ")+fmt.Sprintf(", %d requests a run, %s.",
		found[0].Requests, seeds(len(found[0].Seeds))))
	for _, level := range levels {
		p.Lead = append(p.Lead, "SLO: "+level+".")
	}
	p.Figures = []doc.Figure{goodputs(found)}
	p.Tables = []doc.Table{plannedTable(found)}
	hashes, err := p.addTrail(dir)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, hash := range hashes {
		folders = append(folders, filepath.Join(dir, "points", hash))
	}
	if _, err := p.restOn(folders, nil); err != nil {
		return nil, err
	}
	for i, folder := range folders {
		if i < mostNames {
			p.addFile(filepath.Join(folder, "config.toml"), "config.toml of a run of "+
				found[min(i, len(found)-1)].Name)
		}
	}
	return p, nil
}

// goodputs draws the candidates as bars.
func goodputs(found []candidate) doc.Figure {
	c := &doc.Chart{Kind: doc.Bars, Y: "goodput (requests/s)"}
	for i := range found {
		g := &found[i]
		c.Bars = append(c.Bars,
			doc.Bar{Name: g.Name,
				Parts: []doc.Part{{Name: "goodput", Color: "#0072b2", Value: g.Goodput, Low: g.Low,
					High: g.High}}})
	}
	return doc.Figure{Title: "Goodput",
		Caption: "The largest rate below every failure, by the mean over " +
			"seeds.", Charts: []*doc.Chart{c}}
}

// boundName makes words of what a bound is on.
var boundName = strings.NewReplacer("ttft", "TTFT", "tbt", "TBT", "tpot", "TPOT", "e2e",
	"end to end")

func plannedTable(found []candidate) doc.Table {
	t := doc.Table{Title: "Candidates", Columns: columns(3, "candidate", "limited by", "bounds",
		"goodput req/s", "95 % interval", "rejected %", "output tok/s", "runs")}
	for i := range found {
		g := &found[i]
		interval := "-"
		if g.Low != nil && g.High != nil {
			interval = digits(*g.Low) + " to " + digits(*g.High)
		}
		var bounds []string
		for _, b := range g.Bounds {
			bounds = append(bounds, fmt.Sprintf("%s %s %s of %s s", strings.Replace(b.Stat, "p", "P", 1),
				boundName.Replace(b.Name), digits(b.ValueS), digits(b.Limit)))
		}
		t.Rows = append(t.Rows, row(g.Name, g.LimitedBy, strings.Join(bounds, "; "),
			digits(g.Goodput), interval,
			digits(100*g.RejectedShare), digits(g.ThroughputTokS), fmt.Sprint(g.Runs)))
	}
	return t
}

// addTrail adds every rate that was tried, and returns the hash of a run of each candidate.
func (p *builder) addTrail(dir string) (hashes []string, err error) {
	header, rows, err := readCSV(dir, "trail.csv")
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	t := doc.Table{Title: "Every rate that was tried", Folded: true}
	header = slices.DeleteFunc(header, func(h string) bool { return h == "hash" })
	t.Columns = columns(len(header), header...)
	known := map[string]bool{}
	for _, line := range rows {
		var cells []string
		for _, h := range header {
			cells = append(cells, line[h])
		}
		t.Rows = append(t.Rows, row(cells...))
		if name := line["candidate"]; !known[name] && line["hash"] != "" {
			known[name] = true
			hashes = append(hashes, line["hash"])
		}
	}
	p.Tables = append(p.Tables, t)
	return hashes, nil
}
