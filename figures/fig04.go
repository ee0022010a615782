package figures

import "fmt"

// fig04 is the bandwidth of loading and of saving KV blocks against their size.
func fig04(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	memcpy, load, save := looks()[0], looks()[3], looks()[4]
	pic := picture{
		charts: []chart{{title: "(a) KV cache loading"}, {title: "(b) KV cache saving"}},
		looks:  map[string]look{"memcpy": memcpy, "FlashH2D": load, "FlashD2H": save},
	}
	names := map[string]string{"load memcpy": "memcpy", "save memcpy": "memcpy",
		"load flash": "FlashH2D", "save flash": "FlashD2H"}
	for row := range t.rows {
		direction, engine := t.text(row, "direction"), t.text(row, "engine")
		tokens, bandwidth := t.number(row, "block_tokens"), t.number(row, "gb_s")
		if t.err != nil {
			return picture{}, t.err
		}
		name, ok := names[direction+" "+engine]
		if !ok {
			return picture{}, fmt.Errorf("%s: row %d: no engine %q to %s with", t.path, row+1,
				engine, direction)
		}
		c := &pic.charts[0]
		if direction == "save" {
			c = &pic.charts[1]
		}
		if n := len(c.curves); n == 0 || c.curves[n-1].series != name {
			c.curves = append(c.curves, curve{series: name})
		}
		last := &c.curves[len(c.curves)-1]
		last.points = append(last.points, summarise(tokens, []float64{bandwidth}, false))
	}
	for i := range pic.charts {
		c := &pic.charts[i]
		c.x, c.y, c.doubly = "Block Size (tokens)", "Bandwidth (GB/s)", true
		c.axis = linear(spanOf(c.curves, means))
	}
	return pic, nil
}
