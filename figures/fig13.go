package figures

import "image/color"

// fig13 is the goodput of each step from vLLM to SparseServe, a group of bars a
// model.
func fig13(folders []string) (picture, error) {
	c := chart{y: "Goodput (req/s)"}
	for _, folder := range folders {
		plan, err := readPlan(folder)
		if err != nil {
			return picture{}, err
		}
		c.groups = append(c.groups, goodputs(plan))
	}
	c.axis = linear(barSpan(c.groups))
	return picture{charts: []chart{c}, looks: stepLooks(), wide: 1.4}, nil
}

// stepLooks run from dark to light, SparseServe apart.
func stepLooks() map[string]look {
	out := map[string]look{}
	for i, system := range []string{"vllm", "vllm-s", "vllm-so", "vllm-so-ft", "vllm-so-ft-wc"} {
		level := uint8(30 * i) // the darkest still shows a whisker
		l := look{color: color.RGBA{0x5a + level, 0x6a + level, 0x84 + level, 0xff}}
		if i%2 == 1 {
			l.hatching = 6
		}
		out[steps(system)] = l
	}
	out[steps("sparseserve")] = looks()[3]
	return out
}

// goodputs makes a bar of each candidate, in the order of the plan.
func goodputs(plan []candidate) group {
	var g group
	for _, c := range plan {
		q := c.capacity()
		name := steps(c.System)
		g.label = modelLabel(c.Model)
		g.bars = append(g.bars, bar{series: name, note: decimals(q.mean, 3), parts: []part{{name, q}}})
	}
	return g
}

// steps is the paper's name of a system in Fig. 13.
func steps(system string) string {
	if name, ok := map[string]string{
		"vllm-s":        "vLLM + SA",
		"vllm-so":       "+ Offload",
		"vllm-so-ft":    "+ FT",
		"vllm-so-ft-wc": "+ WC",
		"sparseserve":   "+ LP = SparseServe",
	}[system]; ok {
		return name
	}
	return label(system)
}
