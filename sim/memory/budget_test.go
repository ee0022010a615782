package memory

import "testing"

// Admission leaves the watermark free, growth does not.
func TestBudgetWatermark(t *testing.T) {
	b := NewBudget(20, 4, 0.1) // two blocks
	var g Grant
	if !b.Fits(72) || b.Fits(73) {
		t.Error("18 of 20 blocks should fit above the watermark, 19 not")
	}
	if b.Admit(&g, 73, 0) || b.Used() != 0 {
		t.Errorf("admitted into the watermark; %d used", b.Used())
	}
	if !b.Admit(&g, 72, 0) || b.Total()-b.Used() != 2 {
		t.Errorf("not admitted down to the watermark; %d free", b.Total()-b.Used())
	}
	if !b.Grow(&g, 80, 80) || b.Total()-b.Used() != 0 || b.Grow(&g, 81, 81) {
		t.Errorf("a request grows to the last block and no further; %d free", b.Total()-b.Used())
	}
	if b.Release(&g, true); b.Used() != 0 {
		t.Errorf("%d used after release", b.Used())
	}
}
