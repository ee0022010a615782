package dsa

// Recall returns the share of the attention that a group's picks hold together
// with its sinks and window, in a step of which all is known.
func (v *View) Recall(picked []uint16) float64 {
	var kept, all float64
	for _, s := range v.Kept {
		kept += v.Weight(s)
	}
	all = kept
	for _, s := range v.Score {
		all += v.Weight(s)
	}
	for _, b := range picked {
		kept += v.Weight(v.Score[b])
	}
	return kept / all
}

// Recall returns what share of the attention the selections of a cursor's stream
// hold, step by step of the circle. It is made when it is asked for the first
// time. Read only.
func (l *Library) Recall(c Cursor, grid int) []float32 {
	key := (int(c.Family)*l.scores.Classes()+int(c.Class))*len(l.grid) + grid
	l.mu.RLock()
	recall := l.recalls[key]
	l.mu.RUnlock()
	if recall != nil {
		return recall
	}
	stream, n := l.Stream(c, grid), l.grid[grid]
	sheet := l.sheet
	sheet.Weighs = true
	l.scores.Fill(int(c.Family), n, &sheet)
	recall = make([]float32, stream.Steps)
	var v View
	for t := range recall {
		sheet.View(t, l.scores.Skew(int(c.Class)), &v)
		row := stream.At(t)
		recall[t] = float32(v.Recall(row.Next[:row.Used]))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recalls[key] = recall
	return recall
}
