package answers

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// purchase is what to buy for a load.
type purchase struct {
	Load     string   `json:"load"`
	LoadUnit string   `json:"load_unit"`
	SLO      string   `json:"slo"`
	Requests int      `json:"requests"`
	Seeds    []uint64 `json:"seeds"`
	Prices   string   `json:"prices"`
	Choice   *offer   `json:"choice"`
	Bare     *offer   `json:"cheapest_without_margin"`
	Nearest  *offer   `json:"nearest_miss"`
	Serve    string   `json:"serve"`
	System   string   `json:"system_toml"`
	Evidence struct {
		Class    string `json:"class"`
		Measured string `json:"measured_error"`
		Source   string `json:"source"`
		Weakest  string `json:"weakest_assumption"`
		Accuracy string `json:"accuracy"`
	} `json:"evidence"`
	Candidates []offer        `json:"candidates"`
	Warnings   []warn.Warning `json:"warnings"`
}

// offer is a candidate with its price.
type offer struct {
	Name     string `json:"name"`
	Model    string `json:"model"`
	GPU      string `json:"gpu"`
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason"`
	Replicas int    `json:"replicas"`
	GPUs     int    `json:"gpus"`
	Price    struct {
		Provider   string  `json:"provider"`
		USDPerHour float64 `json:"usd_per_gpu_hour"`
		Date       string  `json:"date"`
	} `json:"price"`
	USDPerHour float64 `json:"usd_per_hour"`
	USDPerMTok float64 `json:"usd_per_million_output_tokens"`
	USDPerMIn  float64 `json:"usd_per_million_input_tokens"`
	Limits     []struct {
		Limit string  `json:"limit"`
		Name  string  `json:"name"`
		Of    float64 `json:"of"`
	} `json:"limits"`
	ThroughputTokS float64  `json:"throughput_tok_s"`
	Headroom       *float64 `json:"headroom"`
	LimitedBy      []string `json:"limited_by"`
	Short          []string `json:"short_of"`
}

// readPurchase makes the page of a plan of what to buy.
func readPurchase(dir string) (*builder, error) {
	var a purchase
	if err := readJSON(dir, "purchase.json", &a); err != nil {
		return nil, err
	}
	if len(a.Candidates) == 0 {
		return nil, fmt.Errorf("%s: no candidate", filepath.Join(dir, "purchase.json"))
	}
	p := &builder{Doc: doc.Doc{Title: nameOf(dir) + ": what to buy"}}
	p.Lead = []string{
		fmt.Sprintf("For %s; %d requests a run of one replica, %s.", a.Load, a.Requests,
			seeds(len(a.Seeds))),
		"SLO: " + a.SLO + ".", "Prices: " + a.Prices + ".",
	}
	var warnings []warn.Said
	for _, w := range a.Warnings {
		warnings = append(warnings, warn.Said{Warning: w})
	}
	p.warn(nil, warnings, 0)
	p.Answers = a.answers()
	p.Figures = a.costs()
	p.Tables = []doc.Table{a.table()}
	if _, err := p.addTrail(dir); err != nil {
		return nil, err
	}
	if _, err := p.restOn(pointFolders(dir), func(m *machine) bool {
		// A card with a tenth more of a figure only shows what a candidate is short of.
		return len(m.Card) == 0
	}); err != nil {
		return nil, err
	}
	p.addFile(filepath.Join(dir, "choice.toml"), "choice.toml")
	return p, nil
}

// answers say what to buy, or what misses by the least, and how far that is to be trusted.
func (a *purchase) answers() []string {
	var all []string
	switch c := a.Choice; {
	case c != nil:
		text := fmt.Sprintf("%s: %d replicas, %d %s, %s $ an hour, %s $ per million input tokens "+
			"or %s $ per million output tokens", c.Name, c.Replicas, c.GPUs, c.GPU, digits(c.USDPerHour),
			digits(c.USDPerMIn), digits(c.USDPerMTok))
		if c.Headroom != nil {
			text += fmt.Sprintf("; %s %% of the load could be added", digits(100**c.Headroom))
		}
		if b := a.Bare; b != nil {
			all = append(all, fmt.Sprintf("without a margin the cheapest is %s: %d replicas, %s $ an hour",
				b.Name, b.Replicas, digits(b.USDPerHour)))
		}
		if len(c.LimitedBy) > 0 {
			text += "; beyond it " + strings.Join(c.LimitedBy, ", ") + " is missed"
		}
		all = append(all, text)
	case a.Nearest != nil:
		all = append(all, "nothing meets the level; the nearest miss is "+a.Nearest.Name+": "+
			a.Nearest.Reason)
	}
	if a.Serve != "" {
		all = append(all, "a replica: "+a.Serve)
	}
	e := &a.Evidence
	for _, one := range []struct{ what, text string }{
		{"measured error of " + e.Class, e.Measured}, {"weakest assumption", e.Weakest},
		{"accuracy", e.Accuracy},
	} {
		if one.text != "" {
			all = append(all, one.what+": "+one.text)
		}
	}
	return all
}

// costs draws what the candidates cost, and how near the level they are.
func (a *purchase) costs() []doc.Figure {
	cost := &doc.Chart{Kind: doc.Bars, Y: "$ an hour"}
	near := &doc.Chart{Kind: doc.Bars, Y: "share of the nearest limit (%)"}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		color := "#7a7a7a"
		if c.Outcome == "meets" {
			color = "#0072b2"
		}
		bar := func(into *doc.Chart, v float64) {
			if v > 0 && !math.IsInf(v, 0) {
				part := doc.Part{Name: c.Outcome, Color: color, Value: v}
				into.Bars = append(into.Bars,
					doc.Bar{Name: c.Name + ", " + c.Outcome, Parts: []doc.Part{part}})
			}
		}
		bar(cost, c.USDPerHour)
		if len(c.Limits) > 0 {
			bar(near, 100*c.Limits[0].Of)
		}
	}
	s := doc.Figure{Title: "Candidates",
		Caption: "Blue meets the level. What a dearer one costs, at least."}
	for _, c := range []*doc.Chart{cost, near} {
		if len(c.Bars) > 0 {
			s.Charts = append(s.Charts, c)
		}
	}
	if len(s.Charts) == 0 {
		return nil
	}
	return []doc.Figure{s}
}

func (a *purchase) table() doc.Table {
	t := doc.Table{Title: "What each candidate comes to", Columns: columns(4,
		"candidate", "outcome", "nearest limit", "price of", "replicas", "GPUs",
		"$/GPU/h", "$/h", "$/M tokens", "output tok/s")}
	counted := func(n int) string {
		if n == 0 {
			return "-"
		}
		return strconv.Itoa(n)
	}
	known := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return digits(v)
	}
	for i := range a.Candidates {
		c := &a.Candidates[i]
		limit := c.Reason
		if len(c.Limits) > 0 {
			limit = fmt.Sprintf("%s, at %s %%", c.Limits[0].Limit, digits(100*c.Limits[0].Of))
		}
		price := strings.TrimSuffix(c.Price.Provider+", "+c.Price.Date, ", ")
		t.Rows = append(t.Rows, row(c.Name, c.Outcome, limit, price, counted(c.Replicas),
			counted(c.GPUs), known(c.Price.USDPerHour), known(c.USDPerHour), known(c.USDPerMTok),
			known(c.ThroughputTokS)))
	}
	return t
}
