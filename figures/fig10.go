package figures

import "strings"

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
	for _, folder := range folders {
		runs, err := Read(folder)
		if err != nil {
			return picture{}, err
		}
		if len(caps) > 0 {
			runs = upTo(runs, caps[half(folder)])
		}
		all = append(all, panels(runs)...)
	}
	m := metrics()[metric]
	return m.picture(all, abscissa{label: "Req Rate (req/s)", of: rate, varies: true}), nil
}

// half says which half of a figure a folder holds: 1 for the one whose name ends in b.
func half(folder string) int {
	if strings.HasSuffix(folder, "b") {
		return 1
	}
	return 0
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
