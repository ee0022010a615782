package calibrate

import (
	"math"
	"slices"

	"sparseserve/hw"
)

// What a gather loses while progressive attention runs beside it shows only where
// both run: in steps of the live loop whose rounds load. The model serves the same
// requests, with more and more of a gather's speed lost, until its steps are on
// average as long as they were:
//
//	mean log(t of the model / t) = 0
const (
	leastLost  = 0.01 // mean error of steps without, below which nothing is said of it
	mostLost   = 0.9
	lostWithin = 0.001 // mean error at which the search ends
	lostTries  = 8
)

// roundsHeldOut are batches that say how well the others' figure prices them.
var roundsHeldOut = []int64{3, 6, 12}

func fitsBesidePSA(at datum) bool { return !slices.Contains(roundsHeldOut, at.At("requests")) }

// fitBesidePSA fits the share to points that were priced without, and returns the
// prices of all of them with it; nil where they show none, or more than any share says.
func fitBesidePSA(p *hw.Profile, all data, without map[string]float64, from source) map[string]float64 {
	fit := all.where(fitsBesidePSA)
	if len(fit) < 3 {
		return nil
	}
	over := func(priced map[string]float64) (mean float64) {
		for _, at := range fit {
			mean += math.Log(priced[at.Key()]/at.seconds) / float64(len(fit))
		}
		return mean
	}
	low, below := 0.0, over(without)
	if below > -leastLost {
		return nil
	}
	with := func(lost float64) (priced map[string]float64, off float64) {
		p.Load.FlashBesidePSA = from.figure(lost, "share", "a gather beside PSA of the round before, in steps of the live loop whose rounds load")
		priced, err := servedBy(p, all)
		must(err) // it has served them
		return priced, over(priced)
	}
	high := mostLost
	longest, above := with(high)
	for try := 0; above > lostWithin && try < lostTries; try++ {
		lost := low - below*(high-low)/(above-below)
		if try%2 == 1 { // or a curve leaves one end where it is
			lost = (low + high) / 2
		}
		priced, off := with(lost)
		switch {
		case math.Abs(off) <= lostWithin:
			return priced
		case off < 0:
			low, below = lost, off
		default:
			high, above, longest = lost, off, priced
		}
	}
	if above < -lostWithin { // no share explains how long they are
		p.Load.FlashBesidePSA = hw.Figure{}
		return nil
	}
	with(high)
	return longest
}
