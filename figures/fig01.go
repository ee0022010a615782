package figures

// fig01 is throughput and KV blocks loaded per iteration against the batch
// size, on two axes.
func fig01(folders []string) (picture, error) {
	runs, err := Read(folders[0])
	if err != nil {
		return picture{}, err
	}
	batch := func(r *Run) float64 { return r.number("system.max_requests") }
	named := func(name string) func(*Run) string { return func(*Run) string { return name } }
	left := curves(runs, named("throughput (left)"), batch, throughput)
	right := curves(runs, named("KV blocks loaded (right)"), batch, blocksLoaded)
	for i := range right {
		right[i].right = true
	}
	for _, c := range append(left, right...) {
		for i := range c.points {
			c.points[i].unstable = false // every request waits from the start
		}
	}
	return picture{charts: []chart{{
		x: "Batch Size", y: "Throughput (tokens/s)",
		curves: append(left, right...),
		axis:   fitted(left),
		right:  &scale{"KV blocks loaded per iteration", fitted(right)},
	}}}, nil
}
