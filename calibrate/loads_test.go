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
