package dsa

import "testing"

func TestFullPicksEveryCandidate(t *testing.T) {
	s := Record(40, 8, Full{}, func(int) *View { return &View{Critical: make([]float32, 40)} })
	for i := range s.Steps {
		row := s.At(i)
		if row.Used != 40 || len(row.Next) != 40 {
			t.Fatalf("step %d: %d of 40 used, %d picked", i, row.Used, len(row.Next))
		}
		for b, picked := range row.Next {
			if int(picked) != b {
				t.Fatalf("step %d: candidate %d in the place of %d", i, picked, b)
			}
		}
	}
	if least := (Full{}).Limit(); least < MaxCandidates {
		t.Errorf("of more than %d candidates not all are picked", least)
	}
}
