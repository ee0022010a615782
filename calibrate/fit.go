package calibrate

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/sparseserve/sparseserve/hw/llm"
)

// observation is a measured point in the form that a fit uses.
type observation struct {
	Point
	seconds float64    // median, or mean (Record.seconds)
	within  float64    // seconds: half of its measurement's uncertainty (resolution.go)
	model   *llm.Model // that stands for the point's shape, nil without one
}

// data are the medians of one or more probes.
type data []observation

// of returns the medians of some probes, in the order of measuring.
func (s *Samples) of(probes ...string) data {
	var d data
	models := map[string]*llm.Model{"": nil}
	for _, r := range s.Records {
		if !slices.Contains(probes, r.Point.Probe) {
			continue
		}
		if _, known := models[r.Point.Shape]; !known {
			m, err := shapeModel(r.Point.Shape)
			must(err) // the file's reader has looked
			models[r.Point.Shape] = m
		}
		d = append(d, observation{r.Point, r.seconds(), r.within(), models[r.Point.Shape]})
	}
	return d
}

// part returns the points that ok accepts, and the rest.
func (d data) part(ok func(observation) bool) (in, out data) {
	for _, p := range d {
		if ok(p) {
			in = append(in, p)
		} else {
			out = append(out, p)
		}
	}
	return in, out
}

// where keeps the points that ok accepts.
func (d data) where(ok func(observation) bool) data {
	in, _ := d.part(ok)
	return in
}

// with keeps the points with a value of an axis.
func (d data) with(axis string, value int64) data {
	return d.where(func(p observation) bool { return p.At(axis) == value })
}

// ofShape keeps the points of a shape.
func (d data) ofShape(shape string) data {
	return d.where(func(p observation) bool { return p.Shape == shape })
}

// inOrder returns the points sorted by shape and tokens.
func (d data) inOrder() data {
	out := slices.Clone(d)
	slices.SortFunc(out, func(a, b observation) int {
		return cmp.Or(cmp.Compare(a.Shape, b.Shape), cmp.Compare(a.At("tokens"), b.At("tokens")))
	})
	return out
}

// shapes lists the distinct shapes, in the order of measuring.
func (d data) shapes() []string {
	var v []string
	for _, p := range d {
		if !slices.Contains(v, p.Shape) {
			v = append(v, p.Shape)
		}
	}
	return v
}

// values lists the distinct values of an axis, rising.
func (d data) values(axis string) []int64 {
	var v []int64
	for _, p := range d {
		v = append(v, p.At(axis))
	}
	slices.Sort(v)
	return slices.Compact(v)
}

// split holds out a third of the points, evenly over groups. It chooses them by the hash of their
// names, so the choice is reproducible. At least `fewest` points of each group stay in the fit, and
// all points that keep accepts. So do the fastest and the slowest point, because a fit must not
// extrapolate.
func (d data) split(group func(observation) string, fewest int, keep func(observation) bool) (fit,
	held data) {
	groups := map[string]data{}
	var order []string
	for _, p := range d {
		g := group(p)
		if _, known := groups[g]; !known {
			order = append(order, g)
		}
		groups[g] = append(groups[g], p)
	}
	if len(d) == 0 {
		return nil, nil
	}
	bySeconds := func(a, b observation) int { return cmp.Compare(a.seconds, b.seconds) }
	fastest, slowest := slices.MinFunc(d, bySeconds).Key(), slices.MaxFunc(d, bySeconds).Key()
	out := map[string]bool{}
	debt := 0 // thirds owed by groups before
	for _, g := range order {
		members := groups[g]
		free := members.where(func(p observation) bool {
			return p.Key() != fastest && p.Key() != slowest && (keep == nil || !keep(p))
		})
		slices.SortFunc(free, func(a, b observation) int {
			return cmp.Compare(hash(a.Key()), hash(b.Key()))
		})
		debt += len(members)
		n := max(0, min(debt/3, len(free), len(members)-fewest))
		debt -= 3 * n
		for _, p := range free[:n] {
			out[p.Key()] = true
		}
	}
	held, fit = d.part(func(p observation) bool { return out[p.Key()] })
	return fit, held
}

// together assigns all points to one group.
func together(observation) string { return "" }

func byShape(at observation) string { return at.Shape }

func byAxis(axis string) func(observation) string {
	return func(p observation) string { return fmt.Sprint(p.At(axis)) }
}

func hash(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
