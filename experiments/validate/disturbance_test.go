package validate

import (
	"math"
	"testing"
)

// decoding makes steps of one number of decodes, whose contexts grow: the model
// says so. Every nth takes slow times as long, live.
func decoding(decodes, steps, nth int, slow float64) (all []step) {
	for i := range steps {
		model := 0.005 + 0.0001*float64(i)
		live := 1.03 * model // a model's error says nothing of the host
		if i%nth == 0 {
			live *= slow
		}
		all = append(all, step{decodes: decodes, live: live, model: model})
	}
	return all
}

func TestAlike(t *testing.T) {
	never := 1 << 20
	with := func(steps []step, change func(*step)) []step {
		for i := range steps {
			change(&steps[i])
		}
		return steps
	}
	offset := with(decoding(2, 100, never, 1), func(s *step) { s.live *= 3 })
	for name, c := range map[string]struct {
		steps []step
		want  float64 // 0: nothing can be said
	}{
		"quiet":                {decoding(1, 100, never, 1), 1},
		"one in ten is slow":   {decoding(1, 100, 10, 1.5), 1.5},
		"one in fifty":         {decoding(1, 100, 50, 1.5), 1},
		"groups differ":        {append(decoding(1, 100, never, 1), offset...), 1},
		"the large group says": {append(decoding(1, 400, never, 1), decoding(2, 20, 10, 9)...), 1},
		"few of each": {
			append(decoding(1, minAlike-1, 2, 9), decoding(2, minAlike-1, 2, 9)...), 0},
		"just enough": {decoding(1, minAlike, 3, 9), 9},
		"loads":       {with(decoding(1, 100, 2, 9), func(s *step) { s.loads = 1 }), 0},
		"prefills":    {with(decoding(1, 100, 2, 9), func(s *step) { s.mixed = true }), 0},
		"split":       {with(decoding(1, 100, 2, 9), func(s *step) { s.split = true }), 0},
		"no price":    {with(decoding(1, 100, 2, 9), func(s *step) { s.model = 0 }), 0},
	} {
		if got, ok := alike(c.steps); math.Abs(got-c.want) > 1e-9 || ok != (c.want > 0) {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, c.want)
		}
	}
}

func TestDisturbed(t *testing.T) {
	var runs []ValidatedRun
	for _, r := range []struct {
		name string
		slow float64
	}{{"quiet", 1}, {"just", 1.01 * DisturbedAbove}, {"under", 0.99 * DisturbedAbove}, {"worst", 2}} {
		runs = append(runs, ValidatedRun{
			Run: r.name, Comparisons: compareAlike(r.name, decoding(1, 100, 10, r.slow))})
	}
	runs = append(runs, ValidatedRun{Run: "silent", Comparisons: compareAlike("silent", nil)})
	disturbed, told := Disturbed(runs)
	if told != 4 || len(disturbed) != 2 || disturbed[0].Run.Run != "worst" ||
		disturbed[1].Run.Run != "just" || math.Abs(disturbed[0].Slow-2) > 1e-9 {
		t.Errorf("%d tell, disturbed are %+v", told, disturbed)
	}
}
