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
func Asked(variants ...[]config.Point) string {
	var systems []sim.Spec
	for _, runs := range variants {
		systems = append(systems, systemsOf(runs)...)
	}
	engines, _ := enginesOf(systems)
	return fmt.Sprintf("%s on %s, %s: %s",
		each(variants, "models", func(runs []config.Point) string { return runs[0].Model }),
		each(variants, "cards", cards), engines, each(variants, "workloads", workload)) +
		budgets(systems) + caches(systems)
}

// systemsOf lists the systems of runs, each once.
func systemsOf(runs []config.Point) (systems []sim.Spec) {
	for i := range runs {
		if i == 0 || runs[i].System.Name != runs[i-1].System.Name {
			systems = append(systems, runs[i].System)
		}
	}
	return systems
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
func workload(runs []config.Point) string {
	c := &runs[0]
	requests := "all its requests"
	if n := c.Workload.Requests; n > 0 {
		requests = Count(n, "request")
	} else if n := c.Workload.Sessions; n > 0 {
		requests = "all turns of " + Count(n, "session")
	} else if !c.Workload.FromFile() {
		requests = "the requests of its stages"
	}
	return traceName(&c.Workload) + ", " + requests + ", " + arrivals(runs)
}

// cards lists the number of GPUs per card, as in "2 replicas of 4x h100-80gb", and the changed
// figures of the card.
func cards(runs []config.Point) string {
	c := &runs[0]
	gpus := distinct(runs, func(p *config.Point) int { return p.System.TensorParallel })
	text := anyOf(gpus) + "x " + c.GPU
	replicas := distinct(runs, func(p *config.Point) int { return p.Fleet.Replicas })
	if slices.Max(replicas) > 1 {
		text = anyOf(replicas) + " replicas of " + text
	}
	return text + config.Changed(c.Card) + originOfKernels(runs)
}

// originOfKernels reports that the card's kernels are imported or derived from another card. It
// returns "" if this project measured them on the card.
func originOfKernels(runs []config.Point) string {
	var origins []string
	for _, s := range systemsOf(runs) {
		_, _, k, derived, err := machineOf(runs[0].GPU, s.Engine)
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

// machineOf loads a card, an engine, and the engine's kernels on the card, which may be derived.
func machineOf(gpu, engine string) (c *hw.Card, e *hw.Engine, k *hw.Kernels, derived bool,
	err error) {
	if c, err = hw.LoadCard(gpu); err != nil {
		return nil, nil, nil, false, err
	}
	if e, err = hw.LoadEngine(engine); err == nil {
		k, derived, err = c.KernelsOf(e.Kernels, gpu)
	}
	return c, e, k, derived, err
}

// anyOf lists numbers, as in "1 or 2".
func anyOf(all []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(all), "[]"), " ", " or ")
}

// arrivals describes how the requests of a configuration arrive.
func arrivals(runs []config.Point) string {
	w := &runs[0].Workload
	switch {
	case w.Arrivals == traces.ArrivalsTrace:
		return "arrivals as recorded"
	case w.Arrivals == traces.ArrivalsClosed:
		all := distinct(runs, func(p *config.Point) int { return p.Workload.Concurrency })
		clients := strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
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

// Seeds lists the seeds of variants, such as "seeds 1, 2".
func Seeds(variants ...[]config.Point) string {
	return listSeeds(distinct(slices.Concat(variants...), func(p *config.Point) uint64 {
		return p.Seed
	}))
}

// listSeeds lists seeds, each once, such as "seeds 1, 2".
func listSeeds(seeds []uint64) string {
	words := distinct(seeds, func(seed *uint64) string { return strconv.FormatUint(*seed, 10) })
	if len(words) == 1 {
		return "seed " + words[0]
	}
	return "seeds " + strings.Join(words, ", ")
}

// Ran describes the runs of variants for the captions of their pictures.
func Ran(variants ...[]config.Point) string {
	return Asked(variants...) + "; " + Seeds(variants...) + "."
}

// configsOf loads the configuration of the first folder or, if it has none, of all others. It omits
// configurations that cannot be read, for example because the trace is on another machine.
func configsOf(folders []string) (configs [][]config.Point) {
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
func engineWarnings(systems []sim.Spec) []warn.Warning {
	text, several := enginesOf(systems)
	if !several {
		return nil
	}
	return []warn.Warning{warn.New(warn.Engines, "different engines: %s; a part of what the systems "+
		"differ by is the engines'; --set system.engine=NAME runs all under one",
		strings.TrimPrefix(text, "engines "))}
}
