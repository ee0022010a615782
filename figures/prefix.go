package figures

import "fmt"

// prefixes is TTFT, TBT and goodput of requests whose prompts have been seen before: over the share
// that hits on the card's own link, and at one share over the speed of the link.
func prefixes(folders []string) (picture, error) {
	t, err := readTable(folders[0])
	if err != nil {
		return picture{}, err
	}
	measures := []struct{ column, title, y string }{
		{"ttft_s", "Mean TTFT", "TTFT (s)"},
		{"tbt_p99_s", "P99 TBT", "TBT (ms)"},
		{"goodput", "Goodput", "Goodput (req/s)"},
	}
	pic := picture{charts: make([]chart, 2*len(measures)), looks: map[string]look{}}
	shared := 0.0
	for row := range t.rows {
		system, hit, link := t.text(row, "system"), t.number(row, "hit"), t.number(row, "link_gb_s")
		x, side := 100*hit, 0
		if link > 0 {
			x, side, shared = link, 1, hit
		}
		for i, m := range measures {
			p := summarise(x, []float64{t.number(row, m.column)}, false)
			switch m.column {
			case "tbt_p99_s":
				p = summarise(x, []float64{1e3 * p.mean}, false)
			case "goodput":
				p.low, p.high = t.number(row, "low"), t.number(row, "high")
			}
			c := &pic.charts[2*i+side]
			c.curves = addTo(c.curves, system, p)
		}
		if t.err != nil {
			return picture{}, t.err
		}
		if _, seen := pic.looks[system]; !seen {
			pic.looks[system] = looks()[len(pic.looks)]
		}
	}
	for i := range pic.charts {
		c, m := &pic.charts[i], measures[i/2]
		c.y = m.y
		c.title = fmt.Sprintf("(%c) %s, over the hit", 'a'+i, m.title)
		c.x = "Prompt that is cached (%)"
		if i%2 == 1 {
			c.title = fmt.Sprintf("(%c) %s, %.0f %% of the prompt cached", 'a'+i, m.title, 100*shared)
			c.x, c.doubly = "Link, each way (GB/s)", true
		}
		c.axis = logarithmic(c.curves)
	}
	return pic, nil
}
