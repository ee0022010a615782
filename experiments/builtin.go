package experiments

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed config/default.toml config/llama3-8b.toml config/ablation.toml papers/*/*.toml
var texts embed.FS

// Default is the experiment that runs if none is named.
const Default = "default"

// Experiment is built in: a configuration over the default one, or a study of a paper that
// serves no requests.
type Experiment struct {
	Name    string
	Text    string // TOML
	Command string // that runs it: simulate or goodput; empty for a study
	Paper   bool   // paper run runs it
}

// builtIn lists the folders and commands of the experiments, paper experiments in the order of
// their figures.
var builtIn = []struct{ path, command string }{
	{"config/default", "simulate"},
	{"config/llama3-8b", "simulate"},
	{"config/ablation", "simulate"},
	{"papers/sparseserve/fig01", "simulate"},
	{"papers/sparseserve/fig04", ""},
	{"papers/sparseserve/fig08", ""},
	{"papers/sparseserve/fig10a", "simulate"},
	{"papers/sparseserve/fig10b", "simulate"},
	{"papers/sparseserve/fig13a", "goodput"},
	{"papers/sparseserve/fig13b", "goodput"},
	{"papers/sparseserve/fig14a", "simulate"},
	{"papers/sparseserve/fig14b", "simulate"},
	{"papers/sparseserve/fig15", "simulate"},
	{"papers/sparseserve/fig16a", "simulate"},
	{"papers/sparseserve/fig16b", "simulate"},
	{"papers/psa/psa-fig2", ""},
	{"papers/psa/psa-fig5", ""},
	{"papers/sparseserve/eviction", ""},
	{"papers/psa/psa-fig6a", "goodput"},
	{"papers/psa/psa-fig6b", "goodput"},
	{"papers/psa/psa-fig6c", "goodput"},
	{"papers/psa/psa-fig6d", "goodput"},
	{"papers/psa/psa-inside", "simulate"},
	{"papers/psa/psa-parts", "simulate"},
	{"papers/psa/psa-goodput", "goodput"},
	{"papers/minference/mi-fig1b", ""},
	{"papers/minference/mi-fig10", ""},
}

// BuiltIn lists the built-in experiments, the default one first.
func BuiltIn() []Experiment {
	all := make([]Experiment, len(builtIn))
	for i, e := range builtIn {
		text, err := texts.ReadFile(e.path + ".toml")
		if err != nil {
			panic(err) // the embed pattern and the table disagree
		}
		all[i] = Experiment{path.Base(e.path), string(text), e.command,
			strings.HasPrefix(e.path, "papers/")}
	}
	return all
}

// Named returns the built-in experiment of that name.
func Named(name string) (Experiment, bool) {
	all := BuiltIn()
	i := slices.IndexFunc(all, func(e Experiment) bool { return e.Name == name })
	if i < 0 {
		return Experiment{}, false
	}
	return all[i], true
}

// Names lists the names of the built-in experiments.
func Names() []string {
	var names []string
	for _, e := range BuiltIn() {
		names = append(names, e.Name)
	}
	return names
}

// About returns the first line of the experiment's comment.
func (e Experiment) About() string {
	line, _, _ := strings.Cut(e.Text, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "#"))
}

// Usage returns the command line that runs the experiment, without the program name.
func (e Experiment) Usage() string {
	if e.Command == "" {
		return "paper figures " + e.Name
	}
	return e.Command
}
