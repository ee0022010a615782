package dsa

import "slices"

// Layer holds the selections of one layer of one request, under a policy that decides for all
// heads of the layer together. Not safe for concurrent use.
type Layer struct {
	lib      *Library
	policy   ByLayer
	cursors  []Cursor    // by KV head
	rankings []*Ranking  // by KV head, of the current grid index
	reports  [][]float32 // by KV head, [values][steps]
	at       []int       // by KV head, step on the cycle
	grid     int
	stop     int
	mean     func(i int) float64
}

// ByLayer reports whether the policy decides for whole layers.
func (l *Library) ByLayer() bool {
	_, ok := l.policy.(ByLayer)
	return ok
}

// Layer returns a layer of a request with kvHeads KV heads, or nil if the policy selects head
// by head.
func (l *Library) Layer(seed uint64, request, layer, kvHeads int) *Layer {
	policy, ok := l.policy.(ByLayer)
	if !ok {
		return nil
	}
	x := &Layer{lib: l, policy: policy, rankings: make([]*Ranking, kvHeads),
		reports: make([][]float32, kvHeads), at: make([]int, kvHeads), grid: -1}
	for h := range kvHeads {
		x.cursors = append(x.cursors, l.CursorOf(seed, request, layer, h, kvHeads))
	}
	x.mean = x.meanReport
	return x
}

// Decide makes the policy's decision after the given number of steps, for a grid index of at
// least 0. Each head attends to used candidates and loads picked candidates.
func (x *Layer) Decide(grid, steps int) (used, picked int) {
	for h := range x.at {
		x.at[h] = (int(x.cursors[h].Phase) + steps) % x.lib.scores.Steps()
	}
	if grid != x.grid {
		clear(x.rankings)
		x.grid = grid
		x.deepen(1)
	}
	n, kept := x.lib.grid[grid], x.lib.kept()
	var load int
	x.stop, load = x.policy.Decide(n, kept, x.stop, x.mean)
	used, picked = x.policy.CountAt(x.stop, n, kept), x.policy.CountAt(load, n, kept)
	if slices.ContainsFunc(x.rankings, func(r *Ranking) bool { return r.depth < picked }) {
		x.deepen(load + 1)
	}
	return used, picked
}

// Order returns the picks most critical candidates of a head. picks may not exceed the number
// that the last Decide returned. Read only.
func (x *Layer) Order(head, picks int) []uint16 {
	r := x.rankings[head]
	return r.Order(x.at[head], picks)
}

// meanReport is the mean over the heads of their i-th reported value.
func (x *Layer) meanReport(i int) float64 {
	sum, value := 0.0, i*x.rankings[0].Steps
	for h, reports := range x.reports {
		if value >= len(reports) {
			x.deepen(i + 1)
			return x.meanReport(i)
		}
		sum += float64(reports[value+x.at[h]])
	}
	return sum / float64(len(x.reports))
}

// deepen extends the rankings to at least the given number of stops.
func (x *Layer) deepen(stops int) {
	for h, c := range x.cursors {
		if r := x.rankings[h]; r == nil || r.stops < stops {
			x.rankings[h] = x.lib.ranking(c, x.grid, stops)
		}
		x.reports[h] = x.rankings[h].reports[c.Class]
	}
}

// Recall returns a head's attention recall under the last decision.
func (x *Layer) Recall(head int) Recall {
	r, t := x.rankings[head], x.at[head]
	all := x.lib.heldAt(x.cursors[head], x.grid, r)
	return all[t*(len(all)/r.Steps)+x.stop]
}

// heldAt returns the recall of a head of the cursor's class at each stop of a ranking,
// [steps][stops].
func (l *Library) heldAt(c Cursor, grid int, r *Ranking) []Recall {
	p := l.policy.(ByLayer)
	return l.recall(c, grid, r.Steps*r.stops, func(t int, v *View, dst []Recall) []Recall {
		from := len(dst)
		dst = append(dst, make([]Recall, r.stops)...)
		kept, order := v.keptWeight(), r.Order(t, r.depth)
		for _, scores := range v.Score {
			all := kept
			for _, s := range scores {
				all += v.Weight(s)
			}
			held, picks := kept, 0
			for stop := range r.stops {
				for ; picks < p.CountAt(stop, r.Candidates, len(v.Kept)); picks++ {
					held += v.Weight(scores[order[picks]])
				}
				dst[from+stop].add(held/all, len(v.Score))
			}
		}
		return dst
	})
}
