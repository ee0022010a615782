package dsa

// Held is what a group's picks hold of its attention together with its sinks and window, over
// the query heads that share the KV head.
type Held struct {
	Share   float32 // mean
	Missed2 float32 // mean square of the rest
}

// add takes in one of so many query heads.
func (h *Held) add(share float64, queries int) {
	h.Share += float32(share) / float32(queries)
	h.Missed2 += float32((1-share)*(1-share)) / float32(queries)
}

// Held returns what a group's picks hold in a step of which all is known.
func (v *View) Held(picked []uint16) (h Held) {
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

// Recall returns what the selections of a cursor's stream hold, step by step of the circle. It
// is made when it is asked for the first time. Read only.
func (l *Library) Recall(c Cursor, grid int) []Held {
	stream := l.Stream(c, grid)
	return l.recall(c, grid, stream.Steps, func(t int, v *View, dst []Held) []Held {
		row := stream.At(t)
		return append(dst, v.Held(row.Next[:row.Used]))
	})
}

// recall keeps what is found in the view of each step, and makes it anew where there are fewer
// than so many values.
func (l *Library) recall(c Cursor, grid, values int, find func(t int, v *View, dst []Held) []Held) []Held {
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
	recall = make([]Held, 0, values)
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
