package memory

import "testing"

// Admission leaves the watermark free, growth does not.
func TestWatermark(t *testing.T) {
	p := NewPool(20, 4, 0.1, nil) // two blocks
	p.Unshared = true
	g := Grant{}
	if !p.Fits(72) || p.Fits(73) {
		t.Error("18 of 20 blocks should fit above the watermark, 19 not")
	}
	if p.Admit(&g, 73, 0) || p.Used() != 0 {
		t.Errorf("admitted into the watermark; %d used", p.Used())
	}
	if !p.Admit(&g, 72, 0) || p.Total()-p.Used() != 2 {
		t.Errorf("not admitted down to the watermark; %d free", p.Total()-p.Used())
	}
	if !p.Grow(&g, 80, 80) || p.Total()-p.Used() != 0 || p.Grow(&g, 81, 81) {
		t.Errorf("a request grows to the last block and no further; %d free", p.Total()-p.Used())
	}
	if p.Release(&g, true); p.Used() != 0 {
		t.Errorf("%d used after release", p.Used())
	}
}

// Requests that share nothing hit what the trace declares.
func TestUnshared(t *testing.T) {
	p := NewPool(1000, 4, 0, nil)
	p.Unshared = true
	for own := range uint64(50) {
		g := textOf(own, 8, piece(7, 40))
		g.Cached = int(own)
		if hit := p.Match(g, 40); hit != g.Cached {
			t.Fatalf("hit %d, the trace declares %d", hit, g.Cached)
		}
		if !p.Grow(g, 40, 40) || p.Used() != 10 {
			t.Fatalf("request %d: %d blocks", own, p.Used())
		}
		p.Release(g, true)
	}
}
