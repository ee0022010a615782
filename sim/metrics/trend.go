package metrics

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// trend keeps up to 64 batch means of a sequence. The batch size doubles when they are full.
type trend struct {
	means []float64
	size  int // values per batch
	sum   float64
	n     int // values in the open batch
}

const trendBatches = 64

func (t *trend) add(v float64) {
	if t.size == 0 {
		t.size = 1
	}
	t.sum += v
	t.n++
	if t.n < t.size {
		return
	}
	t.means = append(t.means, t.sum/float64(t.n))
	t.sum, t.n = 0, 0
	if len(t.means) == trendBatches {
		for i := range trendBatches / 2 {
			t.means[i] = (t.means[2*i] + t.means[2*i+1]) / 2
		}
		t.means = t.means[:trendBatches/2]
		t.size *= 2
	}
}

// rising reports whether the sequence grows without bound, as the delay of an unstable queue does:
// Mann-Kendall's test finds a trend at 99.9 %, and the last quarter exceeds the threshold matters,
// in seconds, and at least twice the first half.
func (t *trend) rising(matters float64) bool {
	n := len(t.means)
	if n < 8 {
		return false
	}
	s := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			switch {
			case t.means[j] > t.means[i]:
				s++
			case t.means[j] < t.means[i]:
				s--
			}
		}
	}
	sd := math.Sqrt(float64(n*(n-1)*(2*n+5)) / 18)
	return float64(s)/sd > 3.1 && t.lastQuarter() > matters && t.lastQuarter() >= 2*t.firstHalf()
}

func (t *trend) lastQuarter() float64 { return mean(t.means[len(t.means)*3/4:]) }
func (t *trend) firstHalf() float64   { return mean(t.means[:len(t.means)/2]) }

// EnoughRequests is the number of requests from which a queue can be called unstable and figures
// are steady.
const EnoughRequests = 200

// warning returns a warning if the queue delay grows beyond the threshold matters, in seconds.
func (t *trend) warning(matters float64) (w warn.Warning, grows bool) {
	if !t.rising(matters) {
		return w, false
	}
	numbers := map[string]float64{"first_half_s": t.firstHalf(), "last_quarter_s": t.lastQuarter()}
	waits := fmt.Sprintf("the last quarter of requests waits %.3g s for its first step, the first "+
		"half %.3g s", t.lastQuarter(), t.firstHalf())
	if n := len(t.means)*t.size + t.n; n < EnoughRequests {
		return warn.New(warn.WaitsGrow, "waits grow: %s; %d requests are too few to tell whether this "+
			"goes on", waits, n).With(numbers), true
	}
	return warn.New(warn.UnstableQueue, "unstable queue: %s; means depend on the length of the run",
		waits).With(numbers), true
}

func mean(xs []float64) float64 {
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}
