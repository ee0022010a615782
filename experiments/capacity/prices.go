package capacity

import (
	_ "embed"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

//go:embed prices.toml
var publicPrices string

// Price is the price of one GPU at one provider.
type Price struct {
	Provider   string    `toml:"provider" json:"provider"`
	GPU        string    `toml:"gpu" json:"gpu"` // name of a card
	USDPerHour float64   `toml:"usd_per_hour" json:"usd_per_gpu_hour"`
	Offer      string    `toml:"offer" json:"offer"` // product with that price
	Read       time.Time `toml:"date" json:"-"`
	Date       string    `toml:"-" json:"date"`            // when it was read, as in 2026-11-09
	Source     string    `toml:"source" json:"source"`     // where
	Via        string    `toml:"via" json:"via,omitempty"` // the published table that has it, if any
	line       int       // in its file
}

// Prices is a file of prices.
type Prices struct {
	File string  `toml:"-"`
	Rows []Price `toml:"price"`
}

// Tables computed over all providers, per card.
var ofAll = []string{"low", "mid", "high"}

// LoadPrices reads a price file; the built-in prices if path is empty.
func LoadPrices(path string) (*Prices, error) {
	p := &Prices{File: "built-in prices"}
	text := publicPrices
	if path != "" {
		p.File = path
		read, err := files.ReadText(path)
		if err != nil {
			return nil, err
		}
		text = string(read)
	}
	const want = "want [[price]] tables of provider, gpu, usd_per_hour, offer, date, source and via"
	if err := tomlfile.Decode(p.File, text, p); err != nil {
		return nil, fmt.Errorf("%w; %s", err, want)
	}
	if len(p.Rows) == 0 {
		return nil, fmt.Errorf("%s: no price; %s", p.File, want)
	}
	at := tomlfile.LinesOf(text)
	for i := range p.Rows {
		p.Rows[i].line = at[fmt.Sprintf("price[%d]", i)]
		if err := p.check(i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Prices) check(i int) error {
	r := &p.Rows[i]
	r.Date = r.Read.Format(time.DateOnly)
	fault := func(format string, args ...any) error {
		return fmt.Errorf("%s:%d: price: %s", p.File, r.line, fmt.Sprintf(format, args...))
	}
	switch {
	case r.Provider == "" || r.GPU == "":
		return fault("wants a provider and a gpu")
	case slices.Contains(ofAll, r.Provider):
		return fault("provider = %q: this name stands for all providers; choose another", r.Provider)
	case !(r.USDPerHour > 0) || math.IsInf(r.USDPerHour, 0):
		return fault("usd_per_hour = %g: must be above 0", r.USDPerHour)
	case r.Read.IsZero() || r.Source == "":
		return fault("wants the date and the source of the price")
	}
	for _, other := range p.Rows[:i] {
		if other.Provider == r.Provider && other.GPU == r.GPU {
			return fault("%s of %s is priced twice, at line %d too; give one of them another provider",
				r.GPU, r.Provider, other.line)
		}
	}
	return nil
}

// Names lists the price tables: first the tables over all providers, then the providers.
func (p *Prices) Names() []string {
	var providers []string
	for _, r := range p.Rows {
		if !slices.Contains(providers, r.Provider) {
			providers = append(providers, r.Provider)
		}
	}
	slices.Sort(providers)
	return append(slices.Clone(ofAll), providers...)
}

// Of returns the price of a card in a table. A card file has the name of the file.
func (p *Prices) Of(table, gpu string) (Price, error) {
	if strings.HasSuffix(gpu, ".toml") {
		gpu = strings.TrimSuffix(filepath.Base(gpu), ".toml")
	}
	if names := p.Names(); !slices.Contains(names, table) {
		return Price{}, fmt.Errorf("plan.prices = %q: %s has no such table; use %s%s",
			table, p.File, strings.Join(names, ", "), nearest.Meant(table, names))
	}
	rows := slices.DeleteFunc(slices.Clone(p.Rows), func(r Price) bool { return r.GPU != gpu })
	if len(rows) == 0 {
		return Price{}, fmt.Errorf("gpu = %q: %s has no price of it; write one into a file (sparseserve "+
			"list prices shows the form) and name it as plan.prices_file", gpu, p.File)
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].USDPerHour < rows[j].USDPerHour })
	switch table {
	case "low":
		return rows[0], nil
	case "mid":
		return rows[(len(rows)-1)/2], nil
	case "high":
		return rows[len(rows)-1], nil
	}
	var have []string
	for _, r := range rows {
		if r.Provider == table {
			return r, nil
		}
		have = append(have, r.Provider)
	}
	return Price{}, fmt.Errorf(
		"gpu = %q: plan.prices = %q has no price of it; %s of %s, and low, mid and high, do", gpu,
		table, strings.Join(have, ", "), p.File)
}
