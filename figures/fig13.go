package figures

import (
	"cmp"
	"image/color"
	"slices"
	"strconv"
)

// fig13 is the goodput of each step from vLLM to SparseServe, a group of bars a
// model.
func fig13(folders []string) (picture, error) {
	c := chart{y: "Goodput (req/s)"}
	for _, folder := range folders {
		t, err := readTable(folder)
		if err != nil {
			return picture{}, err
		}
		g, err := goodputs(t)
		if err != nil {
			return picture{}, err
		}
		c.groups = append(c.groups, g)
	}
	c.axis = linear(barSpan(c.groups))
	return picture{charts: []chart{c}, looks: stepLooks(), wide: 1.4}, nil
}

// stepLooks run from dark to light, SparseServe apart.
func stepLooks() map[string]look {
	out := map[string]look{}
	for i, system := range []string{"vllm", "vllm-s", "vllm-so", "vllm-so-ft", "vllm-so-ft-wc"} {
		level := uint8(40 * i)
		l := look{color: color.RGBA{0x1a + level, 0x2a + level, 0x4a + level, 0xff}}
		if i%2 == 1 {
			l.hatching = 6
		}
		out[steps(system)] = l
	}
	out[steps("sparseserve")] = looks()[3]
	return out
}

// goodputs makes a bar of each system, in the order of the table.
func goodputs(t *table) (group, error) {
	var g group
	values := map[string][]float64{}
	var order []string
	for row := range t.rows {
		model, err1 := t.text(row, "model")
		system, err2 := t.text(row, "system")
		rate, err3 := t.number(row, "goodput_req_s")
		if err := first(err1, err2, err3); err != nil {
			return g, err
		}
		g.label = modelLabel(model)
		if values[system] == nil {
			order = append(order, system)
		}
		values[system] = append(values[system], rate)
	}
	for _, system := range order {
		slices.SortFunc(values[system], cmp.Compare[float64])
		q := summarise(0, values[system], false)
		name := steps(system)
		g.bars = append(g.bars, bar{series: name, note: strconv.FormatFloat(q.mean, 'f', 3, 64), parts: []part{{name, q}}})
	}
	return g, nil
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
