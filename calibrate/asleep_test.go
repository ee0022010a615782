package calibrate

import (
	"math"
	"testing"

	"sparseserve/hw"
)

// What a layer takes longer behind one that copies for longer than threads wait is
// fitted to servers whose layers do; one whose layers are shorter is held out, and
// samples without either give none.
func TestFitAsleep(t *testing.T) {
	const late = 90e-6
	p := truth("h200")
	p.Host.Asleep = hw.Figure{}
	sample := func(requests, loads int64) []Record {
		without := 2e-3 + 1e-4*float64(requests)
		at := datum{Point: point(probeLiveCopies, shapes[0], 32, requests, loads), model: newFake(p, 0, 1).models[shapes[0]]}
		seconds := without + 32*p.HostLoadsSeconds(loads)
		if asleep(p, at) {
			seconds += 32 * late
		}
		return []Record{
			{Point: point(probeLiveOffload, shapes[0], 32, requests), Samples: []float64{without}},
			{Point: at.Point, Samples: []float64{seconds}},
		}
	}
	records := append(sample(4, 216), sample(8, 425)...)
	records = append(records, sample(2, 26)...)
	models := fitAsleep(&Samples{Records: records}, p, source{"a test"})
	if len(models) != 1 || len(models[0].fit) != 2 || len(models[0].held) != 1 || math.Abs(p.Host.Asleep.SI()/late-1) > 1e-3 {
		t.Fatalf("%d models, %+v", len(models), p.Host.Asleep)
	}
	if f := models[0].judge(p); f.MaxError > 1e-3 {
		t.Errorf("%+v", f)
	}
	for name, records := range map[string][]Record{"short layers": sample(2, 26), "without steps that load nothing": records[1:2], "none": nil} {
		if models := fitAsleep(&Samples{Records: records}, p, source{"a test"}); len(models) != 0 || p.Host.Asleep.Set() {
			t.Errorf("%s: %d models, %+v", name, len(models), p.Host.Asleep)
		}
	}
}
