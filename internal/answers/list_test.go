package answers

import (
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/kv"
	"github.com/sparseserve/sparseserve/traces"
)

// must is a document without an error.
func must(t *testing.T) func(*doc.Doc, error) *doc.Doc {
	return func(d *doc.Doc, err error) *doc.Doc {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// A list has a row for each thing that there is, and says something of each.
func TestListsAreWhole(t *testing.T) {
	got := must(t)
	names := func(n int, of func(i int) string) (all []string) {
		for i := range n {
			all = append(all, of(i))
		}
		return all
	}
	presets, built := config.Presets(), experiments.BuiltIn()
	for _, c := range []struct {
		d    *doc.Doc
		want []string
	}{
		{got(Cards()), hw.CardNames()},
		{got(Models()), llm.Names()},
		{got(ServingEngines()), hw.EngineNames()},
		{got(Systems()), names(len(presets), func(i int) string { return presets[i].Name })},
		{got(Selections()), names(len(dsa.Algorithms),
			func(i int) string { return dsa.Algorithms[i].Name })},
		{got(Evictions()), names(len(kv.Evictions()),
			func(i int) string { return kv.Evictions()[i].Name })},
		{got(Routers()), names(len(fleet.Routers()), func(i int) string {
			return fleet.Routers()[i].Name
		})},
		{got(Prefills()), config.PrefillAttentions()},
		{got(Experiments()), names(len(built), func(i int) string { return built[i].Name })},
	} {
		table := &c.d.Tables[0]
		rows := names(len(table.Rows), func(i int) string { return table.Rows[i].At(0) })
		if !slices.Equal(rows, c.want) {
			t.Errorf("%s: rows %q, want %q", c.d.Title, rows, c.want)
		}
		for i := range table.Rows {
			if table.Rows[i].At(len(table.Columns)-1) == "" {
				t.Errorf("%s: nothing is said of %s", c.d.Title, rows[i])
			}
		}
	}
}

// A format of traces has one row, also if its files have two shapes.
func TestFormatsAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range must(t)(Traces()).Tables[0].Rows {
		if format := row.At(1); format != "" && seen[format] {
			t.Errorf("%s has two rows", format)
		} else {
			seen[format] = true
		}
	}
	if !seen[traces.FormatMooncake] {
		t.Errorf("formats %v", seen)
	}
}

// Every figure of a card and an engine has a unit and a source.
func TestFiguresHaveSources(t *testing.T) {
	got := must(t)
	for _, d := range []*doc.Doc{got(Card("h100-80gb")), got(Engine("vllm-0.15"))} {
		if len(d.Tables[0].Rows) < 4 || len(d.Lead) == 0 {
			t.Errorf("%s: %d figures, lead %q", d.Title, len(d.Tables[0].Rows), d.Lead)
		}
		for _, r := range d.Tables[0].Rows {
			if r.At(1) == "" || r.At(3) == "" || r.At(4) == "" {
				t.Errorf("%s: %q", d.Title, r.At(0))
			}
		}
	}
	if _, err := Card("nothing"); err == nil {
		t.Error("a card that there is not")
	}
}

// A model's shape comes with the bytes that it makes: KV of a token of Llama-3-8B are 2 (K and V) x
// 32 layers x 8 heads x 128 numbers of 2 bytes.
func TestModelBytes(t *testing.T) {
	for _, r := range must(t)(Model("llama3-8b")).Tables[0].Rows {
		if r.At(0) == "KV of a token" && (r.At(1) != "128" || r.At(2) != "KiB") {
			t.Errorf("%s is %s %s, want 128 KiB", r.At(0), r.At(1), r.At(2))
		}
	}
}

// The price of each provider is its own, and low, mid and high are ordered.
func TestPricesAreOrdered(t *testing.T) {
	of := map[string]map[string]float64{}
	for _, r := range must(t)(Prices("")).Tables[0].Rows {
		if of[r.At(0)] == nil {
			of[r.At(0)] = map[string]float64{}
		}
		of[r.At(0)][r.At(1)] = *r.Cells[2].Value
	}
	for gpu, low := range of["low"] {
		if mid, high := of["mid"][gpu], of["high"][gpu]; low > mid || mid > high || low <= 0 {
			t.Errorf("%s: %g, %g, %g", gpu, low, mid, high)
		}
	}
	if len(of) < 5 {
		t.Errorf("only %d kinds of prices", len(of))
	}
}
