package dsa

// Recall is the share of a group's attention held by its selected blocks, sinks and window,
// over the query heads that share the KV head.
type Recall struct {
	Share   float32 // mean
	Missed2 float32 // mean square of the missed share
}

// add accumulates the share of one query head, out of the given number of query heads.
func (h *Recall) add(share float64, queries int) {
	h.Share += float32(share) / float32(queries)
	h.Missed2 += float32((1-share)*(1-share)) / float32(queries)
}

// Recall returns the recall of the picked candidates in this step. The view needs all true
// scores.
func (v *View) Recall(picked []uint16) (h Recall) {
	kept := v.keptWeight()
	for _, scores := range v.Score {
		held, all := kept, kept
		for _, s := range scores {
			all += v.Weight(s)
		}
		for _, b := range picked {
			held += v.Weight(scores[b])
		}
		h.add(held/all, len(v.Score))
	}
	return h
}

// Recall returns the recall of each step of a cursor's cycle, and computes it on the first
// call. Read only.
func (l *Library) Recall(c Cursor, grid int) []Recall {
	cycle := l.Cycle(c, grid)
	return l.recall(c, grid, cycle.Steps, func(t int, v *View, dst []Recall) []Recall {
		row := cycle.At(t)
		return append(dst, v.Recall(row.Next[:row.Used]))
	})
}

// recall caches the result of find for each step's view, and recomputes it if the cache holds
// fewer than the requested values.
func (l *Library) recall(c Cursor, grid, values int,
	find func(t int, v *View, dst []Recall) []Recall) []Recall {
	enough := func(had []Recall) bool { return len(had) >= values }
	key := recallKey{contexts{int(c.Family), grid}, int(c.Class)}
	return l.recalls.get(key, enough, func([]Recall) []Recall {
		sheet, recall := l.sheet, make([]Recall, 0, values)
		sheet.Weighs = true
		l.scores.Fill(int(c.Family), l.grid[grid], &sheet)
		var v View
		for t := range sheet.Steps {
			sheet.View(t, l.scores.Skew(int(c.Class)), &v)
			recall = find(t, &v, recall)
		}
		return recall
	})
}
