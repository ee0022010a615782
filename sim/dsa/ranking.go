package dsa

// Ranking is the candidates of one family in order of criticality, per step of a cycle, and the
// reports of its heads per class. It reaches as far as a policy that decides for whole layers
// has requested. Immutable and safe for concurrent use.
type Ranking struct {
	Candidates, Steps int

	stops int      // number of stops covered
	depth int      // number of candidates at the last covered stop
	order []uint16 // [steps][depth]
	// by class, [values][steps]: successive steps read nearby values
	reports [][]float32
}

// Order returns the picks most critical candidates of step t, at most up to the last stop. Read
// only.
func (r *Ranking) Order(t, picks int) []uint16 { return r.order[t*r.depth:][:picks] }

// ranking returns the ranking of a cursor's family at a grid index, with at least the given
// number of stops. Its values do not depend on the number of stops.
func (l *Library) ranking(c Cursor, grid, stops int) *Ranking {
	enough := func(r *Ranking) bool { return r.stops >= stops }
	return l.rankings.get(contexts{int(c.Family), grid}, enough, func(had *Ranking) *Ranking {
		n, p, stops := l.grid[grid], l.policy.(ByLayer), stops
		if had != nil {
			stops = max(stops, 2*had.stops)
		} else { // most steps end within n/8 candidates
			for p.CountAt(stops-1, n, l.kept()) < n/8 {
				stops *= 2
			}
		}
		return l.rank(int(c.Family), n, stops)
	})
}

// kept is the number of blocks that are always attended to.
func (l *Library) kept() int { return l.sheet.Sinks + l.sheet.Window }

func (l *Library) rank(family, n, stops int) *Ranking {
	sheet, p := l.fill(family, n), l.policy.(ByLayer)
	defer l.scratch.Put(sheet)
	r := &Ranking{Candidates: n, Steps: sheet.Steps, stops: stops,
		depth: p.CountAt(stops-1, n, l.kept()), reports: make([][]float32, l.classes)}
	r.order = make([]uint16, 0, r.Steps*r.depth)
	var rank ranker
	var v View
	var reports []float32
	for t := range r.Steps {
		rank.rank(sheet.Critical[t*n:][:n], r.depth)
		for i := range r.depth {
			r.order = append(r.order, uint16(rank.at(i)))
		}
		for class := range r.reports {
			sheet.View(t, l.scores.Skew(class), &v)
			reports = p.Report(&v, rank.at, stops, reports[:0])
			if t == 0 {
				r.reports[class] = make([]float32, len(reports)*r.Steps)
			}
			for i, x := range reports {
				r.reports[class][i*r.Steps+t] = x
			}
		}
	}
	return r
}
