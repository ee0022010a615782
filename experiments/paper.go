package experiments

import (
	"embed"
	"strings"
)

//go:embed fig*.toml eviction.toml psa-*.toml
var paperFiles embed.FS

// paperExperiment is what the figures of the SparseServe paper are drawn from, or
// one beside them that the paper does not have.
type paperExperiment struct {
	Name    string
	command string // that runs it by itself; empty when it serves no requests
	run     func(*Lab, *paperExperiment) error
}

// paperExperiments lists the experiments in the order of the paper. Each has a
// file NAME.toml in this folder.
func paperExperiments() []paperExperiment {
	return []paperExperiment{
		{"fig01", "sweep", (*Lab).sweep},
		{"fig04", "", (*Lab).transfers},
		{"fig08", "", (*Lab).overlap},
		{"fig10a", "sweep", (*Lab).sweep},
		{"fig10b", "sweep", (*Lab).sweep},
		{"fig13a", "plan", (*Lab).goodput},
		{"fig13b", "plan", (*Lab).goodput},
		{"fig14a", "sweep", (*Lab).sweep},
		{"fig14b", "sweep", (*Lab).sweep},
		{"fig15", "sweep", (*Lab).sweep},
		{"fig16a", "sweep", (*Lab).sweep},
		{"fig16b", "sweep", (*Lab).sweep},
		{"psa-fig2", "", (*Lab).sparsity},
		{"psa-fig5", "", (*Lab).accuracy},
		{"eviction", "", (*Lab).evictions},
		{"psa-fig6a", "plan", (*Lab).goodput},
		{"psa-fig6b", "plan", (*Lab).goodput},
		{"psa-fig6c", "plan", (*Lab).goodput},
		{"psa-fig6d", "plan", (*Lab).goodput},
		{"psa-inside", "sweep", (*Lab).sweep},
		{"psa-parts", "sweep", (*Lab).sweep},
		{"psa-goodput", "plan", (*Lab).goodput},
	}
}

// apart are the experiments that take so long that they run only when they are
// asked for by name.
func apart(name string) bool {
	return strings.HasPrefix(name, "psa-") && name != "psa-fig2" && name != "psa-fig5"
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
