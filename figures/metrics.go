package figures

// metric is what one figure shows against the request rate.
type metric struct {
	file  string // name without extension
	label string // axis label with its unit
	unit  string // suffix of the CSV's columns
	value func(*Run) float64
	log   bool // spans orders of magnitude: always on a logarithmic axis
}

// metrics are Figs. 10, 11 and 12 of the SparseServe paper.
func metrics() []metric {
	return []metric{
		{"ttft", "Mean TTFT (s)", "s", func(r *Run) float64 { return r.TTFT.Mean }, true},
		{"throughput", "Throughput (tokens/s)", "tok_s", func(r *Run) float64 { return r.ThroughputTokS }, false},
		{"tbt", "Mean TBT (ms)", "ms", func(r *Run) float64 { return 1e3 * r.TBT.Mean }, false},
	}
}
