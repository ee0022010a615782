package calibrate

import (
	"slices"
	"strings"
	"testing"
)

// Of a step of six layers 600 us more than without loads, at 100 blocks a
// layer, is a microsecond a block; a size without its counterpart says nothing.
func TestHostOfLoads(t *testing.T) {
	s := &Samples{Records: []Record{
		{Point: point(probeLiveOffload, shapes[0], 6, 4), Samples: []float64{400e-6}},
		{Point: point(probeLiveLoads, shapes[0], 6, 4, 100), Samples: []float64{1000e-6}},
		{Point: point(probeLiveLoads, shapes[0], 6, 8, 200), Samples: []float64{1000e-6}},
	}}
	notes := hostOfLoads(s)
	if len(notes) != 1 || !strings.Contains(notes[0], "each of 100 blocks") || !strings.HasSuffix(notes[0], "4 requests: 1.00 us") {
		t.Errorf("notes %q", notes)
	}
	if all := observations(s); !slices.Contains(all, notes[0]) {
		t.Errorf("%q does not have it", all)
	}
}

// The law of loads is fitted where a layer loads as many as in runs, and to no
// fewer than the law's figures need; else a profile has none, whatever the
// built-in one of the card has.
func TestFitHostLoads(t *testing.T) {
	law := func(n float64) float64 { return 32 * (n*150e-9 + 40e-6*n/(n+30)) }
	sample := func(requests, loads int64) []Record {
		without := 2e-3 + 1e-4*float64(requests)
		return []Record{
			{Point: point(probeLiveOffload, shapes[0], 32, requests), Samples: []float64{without}},
			{Point: point(probeLiveLoads, shapes[0], 32, requests, loads), Samples: []float64{without + law(float64(loads))}},
		}
	}
	var many, few []Record
	for i, n := range []int64{20, 100, 250, 500, 1100, 2300} {
		r := sample(int64(i+1), n)
		if many = append(many, r...); n < 1000 {
			few = append(few, r...)
		}
	}
	for name, c := range map[string]struct {
		records []Record
		priced  bool
	}{"many": {many, true}, "few blocks": {few, false}, "few points": {many[6:], false}, "none": {nil, false}} {
		p := truth("a100-40gb")
		models := fitHostLoads(&Samples{Records: c.records}, p, source{"a test"})
		if (len(models) > 0) != c.priced || p.Host.Load.Set() != c.priced || p.Host.Loads.Set() != c.priced || p.Host.LoadsHalf.Set() != c.priced {
			t.Errorf("%s: %d models, %+v", name, len(models), p.Host)
			continue
		}
		for _, m := range models {
			if f := m.judge(p); f.MaxError > 0.01 {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
	if got := len(hostOfLoads(&Samples{Records: many})); got != 6 {
		t.Errorf("%d notes, want one for each point", got)
	}
}
