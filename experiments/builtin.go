package experiments

import (
	_ "embed"
	"slices"
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

// Experiment comes with the program: a configuration over the default one, or
// something else that a figure of the paper is drawn from.
type Experiment struct {
	Name    string
	Text    string // TOML
	Command string // that it is meant for
	serves  bool   // requests: it is a configuration
}

// About returns the first line of the experiment's comment.
func (e Experiment) About() string {
	line, _, _ := strings.Cut(e.Text, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "#"))
}

// Experiments lists the built-in experiments.
func Experiments() []Experiment {
	all := []Experiment{
		{DefaultExperiment, defaultTOML, "simulate", true},
		{"llama3-8b", llamaTOML, "simulate", true},
		{"ablation", ablationTOML, "simulate", true},
	}
	for _, p := range paperExperiments() {
		text, _ := paperText(p.Name)
		e := Experiment{p.Name, text, p.command, p.command != ""}
		if !e.serves {
			e.Command = "figures --paper --only " + p.Name
		}
		all = append(all, e)
	}
	return all
}

func experimentNamed(name string) (Experiment, bool) {
	all := Experiments()
	i := slices.IndexFunc(all, func(e Experiment) bool { return e.Name == name })
	if i < 0 {
		return Experiment{}, false
	}
	return all[i], true
}

func experimentNames() []string {
	var names []string
	for _, e := range Experiments() {
		names = append(names, e.Name)
	}
	return names
}
