package sched

import "testing"

// A prefix that is loaded takes its weight from the budget of the segment that loads it, and of no
// other; without a weight it is free. The first prefill of a batch always goes on.
func TestLoadsCountInTheBudget(t *testing.T) {
	hit := func() *Request { return &Request{Target: 100, Hit: 80, Done: 80} }
	for _, tc := range []struct {
		name    string
		planner Planner
		request *Request
		budget  Budget
		want    Segment
		left    Budget
		ok      bool
	}{
		// 20 tokens and, in each layer, a quarter of 80
		{"layers, free", Planner{Mode: "layer", Layers: 8, MaxInject: 80}, hit(), Budget{Inject: 80},
			Segment{TokenFrom: 80, TokenTo: 100, LayerTo: 4}, Budget{Prefills: 1}, true},
		{"layers", Planner{Mode: "layer", Layers: 8, MaxInject: 80, LoadWeight: 0.25}, hit(),
			Budget{Inject: 80}, Segment{TokenFrom: 80, TokenTo: 100, LayerTo: 2}, Budget{Prefills: 1}, true},
		{"layers, too many", Planner{Mode: "layer", Layers: 8, MaxInject: 80, LoadWeight: 1}, hit(),
			Budget{Inject: 80}, Segment{TokenFrom: 80, TokenTo: 100, LayerTo: 1}, Budget{Prefills: 1}, true},
		{"layers, not the first", Planner{Mode: "layer", Layers: 8, MaxInject: 80, LoadWeight: 1}, hit(),
			Budget{Inject: 80, Prefills: 1}, Segment{}, Budget{Inject: 80, Prefills: 1}, false},
		{"chunk, free", Planner{Mode: "chunked", Layers: 8, Chunk: 15}, hit(), Budget{Tokens: 30},
			Segment{TokenFrom: 80, TokenTo: 95, LayerTo: 8}, Budget{Tokens: 15, Prefills: 1}, true},
		{"chunk", Planner{Mode: "chunked", Layers: 8, Chunk: 15, LoadWeight: 0.25}, hit(),
			Budget{Tokens: 30, Prefills: 1}, Segment{TokenFrom: 80, TokenTo: 90, LayerTo: 8},
			Budget{Prefills: 2}, true},
		{"chunk, the first", Planner{Mode: "chunked", Layers: 8, Chunk: 15, LoadWeight: 1}, hit(),
			Budget{Tokens: 30}, Segment{TokenFrom: 80, TokenTo: 95, LayerTo: 8}, Budget{Prefills: 1}, true},
		{"later chunk", Planner{Mode: "chunked", Layers: 8, Chunk: 15, LoadWeight: 1},
			&Request{Target: 100, Hit: 80, Done: 95}, Budget{Tokens: 30, Prefills: 1},
			Segment{TokenFrom: 95, TokenTo: 100, LayerTo: 8}, Budget{Tokens: 25, Prefills: 2}, true},
		{"whole, not the first", Planner{Mode: "plain", Layers: 8, LoadWeight: 0.25}, hit(),
			Budget{Tokens: 30, Prefills: 1}, Segment{}, Budget{Tokens: 30, Prefills: 1}, false},
	} {
		b := tc.budget
		got, ok := tc.planner.Next(tc.request, &b)
		got.Req = nil
		if got != tc.want || ok != tc.ok || b != tc.left {
			t.Errorf("%s: %+v, %v with %+v left; want %+v, %v with %+v", tc.name, got, ok, b, tc.want,
				tc.ok, tc.left)
		}
	}
}
