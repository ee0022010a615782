package figures

// Figs. 10 to 12 are the three metrics against the request rate, the models
// side by side.

func fig10(folders []string) (picture, error) { return againstRate(folders, 0) }
func fig11(folders []string) (picture, error) { return againstRate(folders, 1) }

// fig12 ends at the rates where the paper caps vLLM: beyond, its queue grows.
// Where vLLM-SO is far above the others, it runs out of the panel.
func fig12(folders []string) (picture, error) {
	return againstRate(folders, 2, 0.15, 0.25)
}

func againstRate(folders []string, metric int, caps ...float64) (picture, error) {
	var all []panel
	for i, folder := range folders {
		runs, err := Read(folder)
		if err != nil {
			return picture{}, err
		}
		if len(caps) > 0 {
			runs = upTo(runs, caps[i])
		}
		all = append(all, panels(runs)...)
	}
	m := metrics()[metric]
	pic := m.picture(all)
	for i := range pic.charts {
		if c := &pic.charts[i]; len(caps) > 0 {
			c.axis = linear(uncut(c.curves))
		}
	}
	return pic, nil
}

func upTo(runs []Run, rate float64) []Run {
	var out []Run
	for _, r := range runs {
		if r.Rate <= rate {
			out = append(out, r)
		}
	}
	return out
}
