package calibrate

import (
	"cmp"

	"github.com/sparseserve/sparseserve/hw"
)

// law declares the cost of a kernel as a sum of terms, for example launch + bytes/rate. A kernel
// whose cost is no sum, because it has a maximum or a root, has a fit function of its own.
type law struct {
	model  string // name of its fit
	points data
	group  func(observation) string // points are held out evenly over groups (split); nil: shapes
	fewest int                      // of a group that stay in the fit; 0: 3
	keep   func(observation) bool   // points that stay in the fit; nil: none
	terms  []term
	price  func(p *hw.Profile, at observation) float64
}

// term is one summand of a law: seconds = coefficient amount, or amount / coefficient for a rate.
type term struct {
	amount func(observation) float64
	rate   bool
	bound  bound // of the coefficient, in SI units
	set    func(c float64, from source)
}

// launch is a constant time.
func launch(figure *hw.Figure, what string) term {
	return term{amount: one, bound: callBound, set: func(c float64, from source) {
		*figure = from.us(c, what)
	}}
}

// over is bytes over a rate of at most high.
func over(bytes func(observation) float64, figure *hw.Figure, high float64, what string) term {
	return term{amount: bytes, rate: true, bound: bound{rateBound.low, high},
		set: func(c float64, from source) { *figure = from.gbps(c, what) }}
}

// share is a term whose figure is the fraction of a known rate that the kernel reaches: seconds,
// the time at the whole rate, is divided by it. The fitted fraction is at most most.
func share(seconds func(observation) float64, figure *hw.Figure, most float64, what string) term {
	return term{amount: seconds, rate: true, bound: bound{1e-3, most},
		set: func(c float64, from source) { *figure = from.figure(c, "x", what) }}
}

// each is a time for each of some parts; below least it stays unset.
func each(parts func(observation) float64, figure *hw.Figure, least float64, what string) term {
	return term{amount: parts, bound: bound{1e-15, 1e-4}, set: func(c float64, from source) {
		*figure = perPart(c, least, from, what)
	}}
}

// known are seconds that are not fitted.
func known(seconds func(observation) float64) term {
	return term{amount: seconds, bound: bound{1, 1}, set: func(float64, source) {}}
}

// fit sets the figures of the terms and returns the model.
func (l *law) fit(from source) model {
	group := l.group
	if group == nil {
		group = byShape
	}
	fit, held := l.points.split(group, cmp.Or(l.fewest, 3), l.keep)
	fitTerms(fit, from, l.terms...)
	return model{name: l.model, fit: fit, held: held, price: l.price}
}

// fitTerms fits the coefficients of the terms by least squares of log seconds, and sets their
// figures.
func fitTerms(d data, from source, terms ...term) {
	amounts := make([]func(observation) float64, len(terms))
	bounds := make([]bound, len(terms))
	for i, t := range terms {
		amounts[i], bounds[i] = t.amount, t.bound
	}
	start := linear(d, amounts...)
	for i, t := range terms {
		switch {
		case start[i] == 0:
			start[i] = 100 * t.bound.low
		case t.rate:
			start[i] = 1 / start[i]
		}
	}
	for i, c := range refine(d, start, bounds, func(c []float64, at observation) (seconds float64) {
		for i, t := range terms {
			if t.rate {
				seconds += t.amount(at) / c[i]
			} else {
				seconds += t.amount(at) * c[i]
			}
		}
		return seconds
	}) {
		terms[i].set(c, from)
	}
}

// free is a figure that a fit finds. in makes the figure of a coefficient in SI units.
type free struct {
	figure *hw.Figure
	start  float64
	bound  bound
	in     func(c float64, what string) hw.Figure
	what   string
}

// fitPrices sets figures of the profile so that its own prices explain the points best. It serves
// costs that are no sum of terms.
func fitPrices(d data, p *hw.Profile, price func(*hw.Profile, observation) float64,
	figures ...free) {
	starts, bounds := make([]float64, len(figures)), make([]bound, len(figures))
	units := make([]float64, len(figures)) // in SI
	for i, f := range figures {
		starts[i], bounds[i] = f.start, f.bound
		*f.figure = f.in(f.start, f.what)
		units[i] = f.figure.SI() / f.figure.Value
	}
	for i, c := range refine(d, starts, bounds, func(c []float64, at observation) float64 {
		for i, f := range figures {
			f.figure.Value = c[i] / units[i]
		}
		return price(p, at)
	}) {
		*figures[i].figure = figures[i].in(c, figures[i].what)
	}
}
