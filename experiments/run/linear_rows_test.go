package run

import "testing"

// A live server's linears have the rows that its engine is priced with; another engine's rows are
// not the server's.
func TestLiveRowsAreThePricedOnes(t *testing.T) {
	for _, c := range []struct {
		engine string
		rows   int // of 400 tokens; 0: the server's own
	}{{"sparseserve-live", 512}, {"vllm-0.15", 0}} {
		p := mustLoad(t, "", "model=llama3-8b", "gpu=h200", "system.engine="+c.engine).Points()[0]
		s, err := NewSimulator().prepare(&p)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := s.linearRows()
		if s.close(); err != nil {
			t.Fatal(err)
		}
		if c.rows == 0 {
			if rows != nil {
				t.Errorf("%s: a live run has its rows", c.engine)
			}
			continue
		}
		if rows == nil || rows(400) != c.rows {
			t.Errorf("%s: not %d rows of 400 tokens", c.engine, c.rows)
		}
	}
}
