package papers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
)

// paperExperiments lists the experiments of the papers' figures, in the papers' order.
func paperExperiments() []experiments.Experiment {
	return slices.DeleteFunc(experiments.BuiltIn(), func(e experiments.Experiment) bool {
		return !e.Paper
	})
}

// PaperExperiments names the experiments of the papers' figures.
func PaperExperiments() []string {
	var names []string
	for _, e := range paperExperiments() {
		names = append(names, e.Name)
	}
	return names
}

// apart are the experiments that take so long that they run only when they are
// asked for by name.
func apart(name string) bool {
	return strings.HasPrefix(name, "psa-") && name != "psa-fig2" && name != "psa-fig5" ||
		name == "mi-serve" || name == "prefix"
}

// experiment runs one experiment.
func (l *Studies) experiment(e *experiments.Experiment) error {
	switch e.Command {
	case "sweep":
		return l.sweep(e)
	case "plan":
		return l.goodput(e)
	}
	study, ok := map[string]func(*experiments.Experiment) error{
		"fig04": l.transfers, "fig08": l.overlap, "psa-fig2": l.sparsity, "psa-fig5": l.accuracy,
		"eviction": l.evictions, "prefix": l.prefixes,
		"mi-fig1b": l.prompts, "mi-fig10": l.kernels, "mi-serve": l.longPrompts,
	}[e.Name]
	if !ok {
		return fmt.Errorf("no study of that name")
	}
	return study(e)
}
