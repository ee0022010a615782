package dsa

import "testing"

// Full attention picks every candidate, StreamingLLM none, whatever the scores.
func TestPoliciesWithoutScores(t *testing.T) {
	for name, want := range map[string]int{FullName: 40, "streaming": 0} {
		named, err := AlgorithmNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		policy := named.Make(&Options{})
		s := Record(40, 8, policy.(ByHead),
			func(int) *View { return &View{Critical: make([]float32, 40)} })
		for i := range s.Steps {
			row := s.At(i)
			if row.Used != want || len(row.Next) != want || len(row.Added)+len(row.Dropped) > 0 {
				t.Fatalf("%s, step %d: %+v, want %d candidates", name, i, row, want)
			}
			for b, picked := range row.Next {
				if int(picked) != b {
					t.Fatalf("%s, step %d: candidate %d in the place of %d", name, i, picked, b)
				}
			}
		}
		if name == FullName && policy.Limit() < MaxCandidates {
			t.Errorf("of more than %d candidates not all are picked", policy.Limit())
		}
	}
}
