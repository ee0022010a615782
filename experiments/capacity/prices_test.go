package capacity

import (
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/hw"
)

// unpriced cards are sold by contract, or rented out by nobody whose prices the sources have.
var unpriced = []string{"ascend-910b", "ascend-910c", "gb300", "gh200-144gb", "gh200-96gb", "h20",
	"mi300x", "mi325x", "mi355x", "rtx-4090", "rtx-5090"}

// Every card that somebody rents out at a public price has it, with its source and date.
func TestPublicPrices(t *testing.T) {
	prices, err := LoadPrices("")
	if err != nil {
		t.Fatal(err)
	}
	for _, gpu := range hw.CardNames() {
		var usd []float64
		for _, table := range ofAll {
			p, err := prices.Of(table, gpu)
			if slices.Contains(unpriced, gpu) {
				if err == nil || !strings.Contains(err.Error(), "built-in prices has no price of it") {
					t.Errorf("%s: %+v, %v", gpu, p, err)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			usd = append(usd, p.USDPerHour)
		}
		if !(usd[0] <= usd[1] && usd[1] <= usd[2]) {
			t.Errorf("%s: low, mid and high are %v", gpu, usd)
		}
	}
	for _, r := range prices.Rows {
		if r.Offer == "" || r.Date < "2026" {
			t.Errorf("%+v", r)
		}
	}
}

func TestPricesOfAFile(t *testing.T) {
	row := func(provider, gpu, usd string) string {
		return "[[price]]\nprovider = \"" + provider + "\"\ngpu = \"" + gpu + "\"\nusd_per_hour = " +
			"" + usd + "\ndate = 2026-11-01\nsource = \"ours\"\n"
	}
	two := row("x", "h200", "4") + row("y", "h200", "2")
	p, err := LoadPrices(testkit.Write(t, "p.toml", two))
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]float64{"low": 2, "mid": 2, "high": 4, "x": 4} {
		if got, err := p.Of(table, "cards/h200.toml"); err != nil || got.USDPerHour != want ||
			got.Date != "2026-11-01" {
			t.Errorf("%s: %+v, %v; want %g", table, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                          "p.toml: no price; want [[price]] tables",
		"[[price]\n":                "p.toml:1: ",
		row("low", "h200", "4"):     `p.toml:1: price: provider = "low": this name stands for all providers`,
		row("x", "h200", "-1"):      "p.toml:1: price: usd_per_hour = -1: must be above 0",
		row("x", "", "1"):           "p.toml:1: price: wants a provider and a gpu",
		two + row("y", "h200", "3"): "p.toml:13: price: h200 of y is priced twice, at line 7 too",
		two + "region = \"here\"\n": "p.toml:13: price[1].region: unknown key",
		strings.Replace(two, "date = 2026-11-01\n", "",
			1): "p.toml:1: price: wants the date and the source",
	} {
		if _, err := LoadPrices(testkit.Write(t, "p.toml", text)); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}
