package dsa

// Recall is what a group's picks hold of its attention together with its sinks and window, over
// the query heads that share the KV head.
type Recall struct {
	Share   float32 // mean
	Missed2 float32 // mean square of the rest
}

// add takes in one of so many query heads.
func (h *Recall) add(share float64, queries int) {
	h.Share += float32(share) / float32(queries)
	h.Missed2 += float32((1-share)*(1-share)) / float32(queries)
}

// Recall returns what a group's picks hold in a step of which all is known.
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

// Recall returns what the selections of a cursor's cycle hold, step by step of the cycle. It is
// made when it is asked for the first time. Read only.
func (l *Library) Recall(c Cursor, grid int) []Recall {
	cycle := l.Cycle(c, grid)
	return l.recall(c, grid, cycle.Steps, func(t int, v *View, dst []Recall) []Recall {
		row := cycle.At(t)
		return append(dst, v.Recall(row.Next[:row.Used]))
	})
}

// recall keeps what is found in the view of each step, and makes it anew where there are fewer
// than so many values.
func (l *Library) recall(c Cursor, grid, values int,
	find func(t int, v *View, dst []Recall) []Recall) []Recall {
	key := (int(c.Family)*l.scores.Classes()+int(c.Class))*len(l.grid) + grid
	l.mu.RLock()
	recall := l.recalls[key]
	l.mu.RUnlock()
	if len(recall) >= values {
		return recall
	}
	sheet := l.sheet
	sheet.Weighs = true
	l.scores.Fill(int(c.Family), l.grid[grid], &sheet)
	recall = make([]Recall, 0, values)
	var v View
	for t := range sheet.Steps {
		sheet.View(t, l.scores.Skew(int(c.Class)), &v)
		recall = find(t, &v, recall)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recalls[key] = recall
	return recall
}
