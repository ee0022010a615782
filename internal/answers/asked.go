package answers

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// Asked describes the server and the workload: model, cards and their changes, engine, lengths,
// arrivals, budgets and prefix caches. All command outputs, reports and captions begin with it.
func Asked(configs ...*config.Config) string {
	var systems []sim.Spec
	for _, c := range configs {
		systems = append(systems, c.Systems...)
	}
	engines, _ := enginesOf(systems)
	return fmt.Sprintf("%s on %s, %s: %s",
		each(configs, "models", func(c *config.Config) string { return c.Model }),
		each(configs, "cards", cards), engines, each(configs, "workloads", workload)) +
		budgets(systems) + caches(systems)
}

// budgets reports the number of tokens that the sparse systems attend to; "" if no budget has a
// fixed size.
func budgets(systems []sim.Spec) string {
	sparse := where(systems, func(s *sim.Spec) bool {
		return s.Sparse() && s.Selection.BudgetTokens > 0
	})
	switch sizes := distinct(sparse, func(s *sim.Spec) int { return s.Selection.BudgetTokens }); {
	case len(sizes) == 0:
		return ""
	case len(sizes) > 3:
		return fmt.Sprintf("; %d budgets", len(sizes))
	default:
		return "; budget " + anyOf(sizes) + " tokens"
	}
}

// caches lists the systems that cache prefixes; "" if none does.
func caches(systems []sim.Spec) string {
	with := where(systems, (*sim.Spec).CachesPrefixes)
	switch len(with) {
	case 0:
		return ""
	case len(systems):
		return "; prefix cache on"
	}
	names := distinct(with, func(s *sim.Spec) string { return s.Name })
	return "; prefix cache of " + strings.Join(names, ", ")
}

// each joins the texts of configurations or runs, each text once. It gives the count if there are
// more than three.
func each[T any](all []T, noun string, of func(T) string) string {
	const most = 3
	texts := distinct(all, func(one *T) string { return of(*one) })
	if len(texts) > most {
		return fmt.Sprintf("%d %s", len(texts), noun)
	}
	return strings.Join(texts, " or ")
}

// workload describes the requests and their arrivals.
func workload(c *config.Config) string {
	requests := "all its requests"
	if n := c.Workload.Requests; n > 0 {
		requests = Count(n, "request")
	} else if n := c.Workload.Sessions; n > 0 {
		requests = "all turns of " + Count(n, "session")
	} else if !c.Workload.FromFile() {
		requests = "the requests of its stages"
	}
	return traceName(&c.Workload) + ", " + requests + ", " + arrivals(c)
}

// cards lists the number of GPUs per card, as in "2 replicas of 4x h100-80gb", and the changed
// figures of the card.
func cards(c *config.Config) string {
	gpus := distinct(c.Systems, func(s *sim.Spec) int { return s.TensorParallel })
	text := anyOf(gpus) + "x " + c.GPU
	if len(c.Replicas) > 1 || c.Replicas[0] > 1 {
		text = anyOf(c.Replicas) + " replicas of " + text
	}
	return text + config.Changed(c.Card) + originOfKernels(c)
}

// originOfKernels reports that the card's kernels are imported or derived from another card. It
// returns "" if this project measured them on the card.
func originOfKernels(c *config.Config) string {
	var origins []string
	for i := range c.Systems {
		card, err := hw.LoadCard(c.GPU)
		if err != nil {
			return ""
		}
		engine, err := hw.LoadEngine(c.Systems[i].Engine)
		if err != nil {
			return ""
		}
		k, derived, err := card.KernelsOf(engine.Kernels, c.GPU)
		if err != nil || !derived && !k.Imported() {
			continue
		}
		if origin := "kernels " + OriginOf(k, derived); !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	if len(origins) == 0 {
		return ""
	}
	return " (" + strings.Join(origins, ", ") + ")"
}

// anyOf lists numbers, as in "1 or 2".
func anyOf(all []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", " or ")
}

// arrivals describes how the requests of a configuration arrive.
func arrivals(c *config.Config) string {
	w := &c.Workload
	switch {
	case w.Arrivals == traces.ArrivalsTrace:
		return "arrivals as recorded"
	case w.Arrivals == traces.ArrivalsClosed:
		clients := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Clients), " ", ", "), "[]")
		if w.ThinkS > 0 {
			return fmt.Sprintf("a closed loop of %s clients that think %g s", clients, w.ThinkS)
		}
		return "a closed loop of " + clients + " clients"
	case len(w.Stages) > 0:
		return w.Arrivals + " arrivals in " + Count(len(w.Stages), "stage")
	}
	if w.Trace == traces.Sessions {
		return w.Arrivals + " arrivals of sessions"
	}
	return w.Arrivals + " arrivals"
}

// traceName describes the source of request lengths.
func traceName(w *traces.Spec) string {
	if w.Trace == traces.Synthetic {
		return "prompts " + w.PromptLengths + ", outputs " + w.OutputLengths
	} else if w.Trace == traces.Sessions {
		return "sessions of " + w.Turns + " turns"
	}
	return files.Label(w.Trace)
}

// OriginOf describes the source of a card's kernels.
func OriginOf(k *hw.Kernels, derived bool) string {
	switch {
	case derived:
		return "derived from " + k.MeasuredOn
	case k.Imported():
		return "imported for this card"
	}
	return "measured on this card"
}

// Count formats a number with its noun, such as "2 runs".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// Seeds lists the seeds of configurations, such as "seeds 1, 2".
func Seeds(configs ...*config.Config) string {
	var seeds []uint64
	for _, c := range configs {
		seeds = append(seeds, c.Seeds...)
	}
	return listSeeds(seeds)
}

// listSeeds lists seeds, each once, such as "seeds 1, 2".
func listSeeds(seeds []uint64) string {
	words := distinct(seeds, func(seed *uint64) string { return strconv.FormatUint(*seed, 10) })
	if len(words) == 1 {
		return "seed " + words[0]
	}
	return "seeds " + strings.Join(words, ", ")
}

// Ran describes the runs of configurations for the captions of their pictures.
func Ran(configs ...*config.Config) string {
	return Asked(configs...) + "; " + Seeds(configs...) + "."
}

// configsOf loads the configuration of the first folder or, if it has none, of all others. It omits
// configurations that cannot be read, for example because the trace is on another machine.
func configsOf(folders []string) (configs []*config.Config) {
	for i, folder := range folders {
		c, err := config.Load(filepath.Join(folder, "config.toml"), nil)
		if err != nil {
			continue
		}
		if configs = append(configs, c); i == 0 {
			break
		}
	}
	return configs
}

// enginesOf lists the engines of systems, each with its systems if there are several.
func enginesOf(systems []sim.Spec) (text string, several bool) {
	all := distinct(systems, func(s *sim.Spec) string { return s.Engine })
	if len(all) == 1 {
		return "engine " + all[0], false
	}
	for i, engine := range all {
		own := where(systems, func(s *sim.Spec) bool { return s.Engine == engine })
		names := distinct(own, func(s *sim.Spec) string { return s.Name })
		all[i] += " (" + strings.Join(names, ", ") + ")"
	}
	return "engines " + strings.Join(all, ", "), len(all) > 1
}

// engineWarnings reports that systems run under different engines, because part of their difference
// then comes from the engines. It is empty if all run under one engine.
func engineWarnings(systems []sim.Spec) []resultWarning {
	text, several := enginesOf(systems)
	if !several {
		return nil
	}
	return said([]warn.Warning{warn.New(warn.Engines, "different engines: %s; a part of what the "+
		"systems differ by is the engines'; --set system.engine=NAME runs all under one",
		strings.TrimPrefix(text, "engines "))}, "")
}
