package figures

// fig15 is throughput and KV blocks loaded per iteration against the request
// rate, without and with batch size control.
func fig15(folders []string) (picture, error) {
	runs, err := Read(folders[0])
	if err != nil {
		return picture{}, err
	}
	control := func(r *Run) string {
		if on, _ := r.Settings["system.batch_control"].(bool); on {
			return "With Batch Size Control"
		}
		return "W/O Batch Size Control"
	}
	pic := picture{}
	for _, m := range []struct {
		title, label string
		value        func(*Run) float64
	}{
		{"(a) Throughput", "Throughput (tokens/s)", throughput},
		{"(b) KV blocks loaded", "KV blocks loaded per iteration", blocksLoaded},
	} {
		c := chart{title: m.title, x: "Req Rate (req/s)", y: m.label,
			curves: curves(runs, control, rate, m.value)}
		c.axis = fitted(c.curves)
		if s := spanOf(c.curves, means); s.low > 0 && s.high > 20*s.low {
			c.axis = logarithmic(c.curves)
		}
		pic.charts = append(pic.charts, c)
	}
	return pic, nil
}
