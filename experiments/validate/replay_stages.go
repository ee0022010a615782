package validate

import (
	"fmt"
	"math"
	"strconv"
)

// LoadStage is a part of a record in which requests arrived at one rate.
type LoadStage struct {
	Label      string  // "5 req/s, 0-600 s"
	Rate       float64 // requests/s
	From, To   float64 // s, first and last arrival
	first, end int     // requests [first, end)
}

// AllStages is the label of the whole record.
const AllStages = "all"

// Thresholds for a change of the rate.
const (
	stageLeast  = 50   // requests in a stage
	stageFactor = 1.25 // between the rates of neighbours
	stageGain   = 10.0 // log-likelihood that a cut must gain, times the dispersion
	stageNear   = 10   // gaps on either side of the best place that a cut may move by
)

// loadStages splits arrivals (ascending, in seconds) where their rate changes.
//
// A split is tried at the position that maximizes the likelihood of two steady Poisson processes,
// with at least stageLeast requests on either side. Over one process it gains n ln(S/n) - k
// ln(S1/k) - (n-k) ln(S2/(n-k)) of log-likelihood, for n gaps with sum S, and k gaps with sum S1
// before the split.
//
// It is accepted if the rates differ by stageFactor or more and the gain is at least stageGain
// times the dispersion: the larger squared coefficient of variation of the gaps on either side, at
// least 1. So bursts of a steady load are not stages.
//
// It is moved to the longest of the stageNear gaps on either side, because clients pause between
// stages and one gap more or less is no evidence. Both parts are split further in the same way. A
// record at one rate is one stage.
func loadStages(arrivals []float64) []LoadStage {
	var cuts []int
	var cut func(first, end int)
	cut = func(first, end int) {
		if at := rateChange(arrivals[first:end]); at > 0 {
			cut(first, first+at)
			cuts = append(cuts, first+at)
			cut(first+at, end)
		}
	}
	cut(0, len(arrivals))
	var stages []LoadStage
	first := 0
	for _, end := range append(cuts, len(arrivals)) {
		s := LoadStage{From: arrivals[first], To: arrivals[end-1], Rate: arrivalRate(arrivals[first:end]),
			first: first, end: end}
		s.Label = stageLabel(&s, arrivals[len(arrivals)-1])
		stages = append(stages, s)
		first = end
	}
	return stages
}

// rateChange returns the first arrival of the second part, or 0 for no cut.
func rateChange(a []float64) int {
	if len(a) < 2*stageLeast {
		return 0
	}
	n := len(a) - 1 // gaps; the gap before arrival i belongs to the part before the cut
	best, at := 0.0, 0
	whole := likelihood(n, a[n]-a[0])
	for i := stageLeast; i <= len(a)-stageLeast; i++ {
		if gain := likelihood(i, a[i]-a[0]) + likelihood(n-i, a[n]-a[i]) - whole; gain > best {
			best, at = gain, i
		}
	}
	if at == 0 {
		return 0
	}
	first, last := max(stageLeast, at-stageNear), min(len(a)-stageLeast, at+stageNear)
	for i := first; i <= last; i++ {
		if a[i]-a[i-1] > 1.01*(a[at]-a[at-1]) { // of equal gaps, the first
			at = i
		}
	}
	before, after := a[:at], a[at:]
	factor := arrivalRate(before) / arrivalRate(after)
	if math.Max(factor, 1/factor) < stageFactor || best < stageGain*max(1, dispersion(before),
		dispersion(after)) {
		return 0
	}
	return at
}

// likelihood returns the log-likelihood of n exponential gaps with the given sum at their best
// rate, up to a term common to all cuts. A mean gap below a microsecond counts as a microsecond.
func likelihood(n int, sum float64) float64 {
	k := float64(n)
	return -k * math.Log(max(sum/k, 1e-6))
}

// arrivalRate returns the rate of arrivals in requests/s: infinite if all arrive at once, NaN for a
// single arrival.
func arrivalRate(a []float64) float64 { return float64(len(a)-1) / (a[len(a)-1] - a[0]) }

// dispersion returns the squared coefficient of variation of the gaps: 1 for a Poisson process, 0
// for equal gaps, more with bursts.
func dispersion(a []float64) float64 {
	n := float64(len(a) - 1)
	mean := (a[len(a)-1] - a[0]) / n
	if mean == 0 {
		return 0
	}
	square := 0.0
	for i := 1; i < len(a); i++ {
		square += (a[i] - a[i-1] - mean) * (a[i] - a[i-1] - mean)
	}
	return square / n / (mean * mean)
}

// stageLabel formats the rate with two digits, and whole seconds unless the record is short.
func stageLabel(s *LoadStage, last float64) string {
	decimals := 0
	if last < 60 {
		decimals = 1
	}
	rate := "at once"
	if s.Rate > 0 && !math.IsInf(s.Rate, 0) {
		scale := math.Pow(10, 1-math.Floor(math.Log10(s.Rate)))
		rate = strconv.FormatFloat(math.Round(s.Rate*scale)/scale, 'f', -1, 64) + " req/s"
	}
	return fmt.Sprintf("%s, %.*f-%.*f s", rate, decimals, s.From, decimals, s.To)
}
