package units

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       float64
	}{
		{"100ms", "s", 0.1}, {"150 ms", "s", 0.15}, {"15s", "s", 15}, {"2m", "s", 120},
		{"1.5h", "s", 5400}, {"250us", "s", 250e-6}, {"0.5", "s", 0.5}, {"3s", "ms", 3000},
		{"64k", "tokens", 64000}, {"64Ki", "tokens", 65536}, {"1M", "tokens", 1e6},
		{"1.5k tokens", "tokens", 1500}, {"200 requests", "requests", 200}, {"1e3", "tokens", 1000},
		{"80GiB", "GiB", 80}, {"80GB", "GiB", 80e9 / (1 << 30)}, {"2TiB", "GiB", 2048},
		{"1GiB", "MiB", 1024}, {"3.35TB/s", "GB/s", 3350}, {"1PFLOP/s", "TFLOP/s", 1000},
		{"2/s", "requests/s", 2}, {"90/min", "requests/s", 1.5}, {"36/h", "requests/s", 0.01},
		{"90 requests/min", "requests/s", 1.5}, {"5%", "share", 0.05}, {"0.2", "share", 0.2},
		{"-3", "", -3}, {".5", "", 0.5},
	} {
		if got, err := Parse(c.text, c.unit); got != c.want || err != nil {
			t.Errorf("%q in %q is %v, want %v (%v)", c.text, c.unit, got, c.want, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ text, unit, why string }{
		{"", "s", "not a number"}, {"fast", "s", "not a number"}, {"ms", "s", "not a number"},
		{"NaN", "s", "not a number"}, {"0x10", "tokens", `unit "x10"`},
		{"64k", "s", `the unit "k"`}, {"100ms", "tokens", `the unit "ms"`},
		{"64K", "tokens", "64k or 64Ki"}, {"5%", "s", `unit "%"`}, {"2/s", "s", `unit "/s"`},
		{"5s", "", `the unit "s"`}, {"10ms", "requests/s", `unit "ms"`},
	} {
		if got, err := Parse(c.text, c.unit); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%q in %q is %v (%v), want an error of %q", c.text, c.unit, got, err, c.why)
		}
	}
}

// Every example is a value in its unit.
func TestExample(t *testing.T) {
	for _, unit := range []string{"s", "GiB", "MiB", "GB/s", "TFLOP/s", "share", "requests/s",
		"tokens"} {
		if _, err := Parse(Example(unit), unit); err != nil {
			t.Errorf("%s: %q %v", unit, Example(unit), err)
		}
	}
	if got := Example("GPUs"); got != "" {
		t.Errorf("GPUs: %q", got)
	}
}
