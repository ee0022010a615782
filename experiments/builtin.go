package experiments

import (
	_ "embed"
	"strings"
)

//go:embed default.toml
var defaultTOML string

// DefaultExperiment is what runs when nothing is named.
const DefaultExperiment = "default"

// Experiment is a configuration that comes with the program.
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
	}
}

func experimentNamed(name string) (Experiment, bool) {
	for _, e := range Experiments() {
		if e.Name == name {
			return e, true
		}
	}
	return Experiment{}, false
}

func experimentNames() []string {
	var names []string
	for _, e := range Experiments() {
		names = append(names, e.Name)
	}
	return names
}
