package experiments

import (
	"embed"
	"strings"
)

//go:embed fig*.toml
var paperFiles embed.FS

// paperExperiment is what the figures of the SparseServe paper are drawn from.
type paperExperiment struct {
	Name string
	// scaled says that its runs depend on how long outputs are.
	scaled bool
	run    func(*Lab, *paperExperiment) error
}

// paperExperiments lists the experiments in the order of the paper. Each has a
// file NAME.toml in this folder.
func paperExperiments() []paperExperiment {
	return []paperExperiment{
		{"fig01", true, (*Lab).sweep},
		{"fig04", false, (*Lab).transfers},
		{"fig08", false, (*Lab).overlap},
		{"fig10a", true, (*Lab).sweep},
		{"fig10b", true, (*Lab).sweep},
		{"fig13a", true, (*Lab).goodput},
		{"fig13b", true, (*Lab).goodput},
		{"fig14a", true, (*Lab).sweep},
		{"fig14b", false, (*Lab).sweep},
		{"fig15", true, (*Lab).sweep},
		{"fig16a", true, (*Lab).sweep},
		{"fig16b", false, (*Lab).sweep},
	}
}

// PaperExperiments names the experiments behind the paper's figures.
func PaperExperiments() []string {
	var names []string
	for _, e := range paperExperiments() {
		names = append(names, e.Name)
	}
	return names
}

// paperText returns the file of a paper experiment.
func paperText(name string) (string, bool) {
	if strings.ContainsAny(name, `/\`) {
		return "", false
	}
	text, err := paperFiles.ReadFile(name + ".toml")
	return string(text), err == nil
}
