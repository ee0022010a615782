package dsa

import "testing"

func TestStreamingPicksNoCandidate(t *testing.T) {
	s := Record(40, 8, Streaming{}, func(int) *View { return &View{Critical: make([]float32, 40)} })
	for i := range s.Steps {
		if row := s.At(i); len(row.Next) > 0 || row.Used > 0 || len(row.Added)+len(row.Dropped) > 0 {
			t.Errorf("step %d: %+v", i, row)
		}
	}
}
