package experiments

import (
	_ "embed"
	"strings"
)

var (
	//go:embed default.toml
	defaultTOML string
	//go:embed llama3-8b.toml
	llamaTOML string
	//go:embed ablation.toml
	ablationTOML string
)

// DefaultExperiment is what runs when nothing is named.
const DefaultExperiment = "default"

// Experiment is a configuration that comes with the program, over the default
// one.
type Experiment struct {
	Name string
	Text string // TOML
}

// About returns the first line of the experiment's comment.
func (e Experiment) About() string {
	line, _, _ := strings.Cut(e.Text, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "#"))
}

// Experiments lists the built-in experiments.
func Experiments() []Experiment {
	return []Experiment{
		{DefaultExperiment, defaultTOML},
		{"llama3-8b", llamaTOML},
		{"ablation", ablationTOML},
	}
}

func experimentNamed(name string) (Experiment, bool) {
	for _, e := range Experiments() {
		if e.Name == name {
			return e, true
		}
	}
	if text, ok := paperText(name); ok {
		return Experiment{name, text}, true
	}
	return Experiment{}, false
}

func experimentNames() []string {
	var names []string
	for _, e := range Experiments() {
		names = append(names, e.Name)
	}
	return append(names, PaperExperiments()...)
}
