package hw

import (
	"math"
	"strings"
	"testing"
)

// A layer's round trip is what was measured, batch by batch; between batches and
// between numbers of KV heads on the line between them, and with other lists longer
// or shorter by the rate.
func TestTurns(t *testing.T) {
	p := mustProfile(t, "h200")
	h := &p.Host
	h.LayerSync, h.LayerRequest, h.LayerRate = us(1000), us(5), rate(1)
	h.Turns = []TurnRow{{8, 1, 2, us(16)}, {8, 3, 6, us(40)}, {8, 8, 16, us(48)}, {32, 1, 8, us(30)}, {32, 2, 16, us(46)}, {32, 4, 32, us(66)}}
	const kib = 1024
	for name, c := range map[string]struct {
		heads, requests int
		bytes, want     float64 // us
	}{
		"measured":                  {8, 3, 6 * kib, 40},
		"of the other":              {32, 2, 16 * kib, 46},
		"between batches":           {8, 2, 4 * kib, 28},
		"longer lists":              {8, 3, 6*kib + 7000, 47},
		"shorter lists":             {32, 4, 32*kib - 7000, 59},
		"more requests":             {32, 6, 32 * kib, 76},
		"with their lists":          {32, 6, 48 * kib, 76 + 16*kib*1e-3},
		"between heads":             {20, 1, 5 * kib, 23},
		"between both":              {20, 2, (4 + 16) / 2 * kib, (28 + 46) / 2.},
		"at a batch of one of them": {20, 3, (6 + 24) / 2 * kib, (40 + 56) / 2.},
		"beyond one of them":        {20, 6, 20 * kib, (41.6+66)/2 + 2*5},
		"fewer heads":               {4, 1, 2 * kib, 16},
		"more heads":                {64, 1, 8 * kib, 30},
		"never below nothing":       {32, 1, 8*kib - 1e6, 0},
	} {
		if got := p.TurnSeconds(false, c.heads, c.requests, c.bytes) * 1e6; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %g us, want %g", name, got, c.want)
		}
	}
	h.Turns = nil
	if got, want := p.TurnSeconds(false, 8, 3, 2000), p.LayerSyncSeconds(3, 2000); math.Abs(got-want) > 1e-12 {
		t.Errorf("not measured by batch: %g s, want %g", got, want)
	}
}

// Rows in another order, and such as say the same twice, are refused with their line.
func TestTurnsInOrder(t *testing.T) {
	for want, rows := range map[string][]TurnRow{
		"host.turns[1].requests": {{8, 2, 4, us(20)}, {8, 1, 6, us(30)}},
		"host.turns[1].kv_heads": {{32, 1, 8, us(20)}, {8, 2, 16, us(30)}},
		"host.turns[2].requests": {{8, 1, 2, us(20)}, {32, 1, 8, us(20)}, {32, 1, 9, us(30)}},
		"host.turns[0].requests": {{8, 0, 2, us(20)}},
	} {
		p := mustProfile(t, "h200")
		p.Host.Turns = rows
		data, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ParseProfile("a.toml", data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", rows, err, want)
		}
	}
}
