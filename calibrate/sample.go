package calibrate

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Rule determines the number of a point's samples: sampling ends when half the 95 % confidence
// interval of the median is within Spread of it, or at one of the caps.
type Rule struct {
	Spread float64       // relative
	Warmup int           // runs before the first sample
	Least  int           // samples
	Most   int           // samples
	Time   time.Duration // spent sampling one point, warm-up included
}

// FullRule and QuickRule are the rules of the plans Full and Quick.
var (
	FullRule = Rule{Spread: 0.02, Warmup: 2, Least: 11, Most: 150,
		Time: 450 * time.Millisecond}
	QuickRule = Rule{Spread: 0.03, Warmup: 1, Least: 7, Most: 40, Time: 150 * time.Millisecond}
)

// of returns the rule of a probe. Some have a fixed number of samples, regardless of their
// duration.
func (r Rule) of(probe string) Rule {
	if n := probeOf(probe).fixed; n > 0 {
		r.Least, r.Most, r.Time = n, n, time.Minute
	}
	return r
}

// sample repeats a timed call until the rule is satisfied. A long call has fewer samples than
// Least, but at least three.
func (r Rule) sample(ctx context.Context, timed Timed) ([]float64, error) {
	started := time.Now()
	samples, err := timed(r.Warmup, 1)
	if err != nil {
		return nil, err
	}
	each := time.Since(started) / time.Duration(r.Warmup+1)
	if each == 0 {
		each = 1
	}
	for {
		rest := r.Time - time.Since(started)
		want := len(samples) // doubles from round to round
		if len(samples) < r.Least {
			want = r.Least - len(samples)
		}
		want = min(want, r.Most-len(samples), int(rest/each))
		want = max(want, 3-len(samples))
		if want <= 0 {
			return samples, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := timed(0, want)
		if err != nil {
			return nil, err
		}
		samples = append(samples, more...)
		for _, s := range more {
			if !(s > 0) || math.IsInf(s, 0) {
				return nil, fmt.Errorf("a sample of %v seconds", s)
			}
		}
		if len(samples) >= r.Least && medianOf(samples).Spread() <= r.Spread {
			return samples, nil
		}
	}
}
