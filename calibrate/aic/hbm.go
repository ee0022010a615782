package aic

import (
	"fmt"
	"math"

	"github.com/sparseserve/sparseserve/hw"
)

// hbm recognizes times that are too short for HBM. A benchmark's loop finds its data in the L2; a
// server's L2 holds the data of other layers.
type hbm struct {
	l2     float64 // bytes
	launch float64 // shortest time, ms
	rate   float64 // highest rate of data that exceeds the L2, bytes per ms; 0: there is none
}

func newHBM(card *hw.Card) *hbm { return &hbm{l2: card.GPU.L2Size.SI(), launch: math.Inf(1)} }

// add adds a measured time of a kernel that reads the given bytes.
func (h *hbm) add(bytes, ms float64) {
	if h.launch = min(h.launch, ms); bytes > 4*h.l2 {
		h.rate = max(h.rate, bytes/ms)
	}
}

// time returns the milliseconds of reading the given bytes from HBM.
func (h *hbm) time(bytes float64) float64 { return h.launch + bytes/h.rate }

func (h *hbm) isCached(bytes, ms float64) bool {
	return h.rate > 0 && bytes <= 2*h.l2 && ms < 0.95*h.time(bytes)
}

// fromHBM replaces times of a kernel whose data was in the L2, with the bytes that it reads from
// HBM. A replaced time that is not a point of the grid is dropped and judges nothing.
func (im *importer) fromHBM(g *hw.Grid, times map[hw.Sizes]float64, bytes func(hw.Sizes) float64) {
	hbm, cached := newHBM(im.card), 0
	for at, t := range times {
		hbm.add(bytes(at), t)
	}
	for at, t := range times {
		if !hbm.isCached(bytes(at), t) {
			continue
		}
		cached++
		if _, on := place(g, at); on {
			times[at] = hbm.time(bytes(at))
		} else {
			delete(times, at)
		}
	}
	if cached > 0 {
		im.notes = append(im.notes, fmt.Sprintf("%s of %s: HBM's rate replaces %d times "+
			"measured in the L2", g.Kernel, g.Type, cached))
	}
}
