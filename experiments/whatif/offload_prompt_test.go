package whatif

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestOffloadPromptAgainstAScan makes the runs of every length of a grid with and without
// offloading: the threshold is between the two lengths at which a scan sees the answer change.
func TestOffloadPromptAgainstAScan(t *testing.T) {
	const low, high, step = 1600, 4000, 400
	alone := write(t, withoutSearch())
	end := func(length int, offload bool) float64 { // mean time end to end over seeds, s
		total := 0.0
		for _, s := range plain(t, alone, "system.kv_gib=1", fmt.Sprint("offload.on=", offload),
			fmt.Sprintf("workload.prompt_lengths=fixed(%d)", length)) {
			total += s.E2E.Mean
		}
		return total
	}
	last, first, changes := 0, 0, 0 // without use and with it; changes of the answer
	for length, before := low, false; length <= high; length += step {
		pays := end(length, true) < end(length, false)
		if pays != before {
			changes++
		}
		switch before = pays; {
		case pays && first == 0:
			first = length
		case !pays:
			last = length
		}
	}
	if changes != 1 || last == 0 || first != last+step {
		t.Fatalf("the scan sees %d changes: no use up to %d, use from %d", changes, last, first)
	}
	th, err := ThresholdNamed("offload-prompt")
	if err != nil {
		t.Fatal(err)
	}
	found := carryOut(t, &Study{Config: write(t, small), Set: []string{"system.kv_gib=1"},
		Metric: "e2e_mean", Thresholds: []string{th.Name},
		Vary: []string{fmt.Sprintf("prompt=%d..%d", low, high)}})
	x := found.Cases[0].Thresholds[0]
	if x.Holds == nil || x.Fails == nil {
		t.Fatalf("no threshold, the scan has it between %d and %d: %+v", last, first, x.Tried)
	}
	pays, _ := number(x.Holds.Setting)
	not, _ := number(x.Fails.Setting)
	neighbours(t, x)
	if not > float64(first) || pays < float64(last) || *x.Low != not || *x.High != pays {
		t.Errorf("%s; the scan has it between %d and %d", x.Text, last, first)
	}
	if x.Own == nil || !strings.Contains(x.Text, "; as configured, "+th.answer(x.Own)) {
		t.Errorf("%q does not say what holds as configured", x.Text)
	}
	n := int(pays) // the basis of the answer equals simulate's
	if with, without := end(n, true)/3, end(n, false)/3; math.Abs(x.Holds.Value-with) > 1e-9 ||
		math.Abs(x.Holds.Against-without) > 1e-9 {
		t.Errorf("at %d: %v and %v, simulate has %v and %v", n, x.Holds.Value, x.Holds.Against, with,
			without)
	}
}
