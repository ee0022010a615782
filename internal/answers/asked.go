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
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// Asked says what serves which requests, and how these arrive: model, cards and their changes,
// engine, lengths, arrivals, budgets and prefix caches. All commands, reports and captions of
// pictures begin by it.
func Asked(configs ...*config.Config) string {
	var systems []sim.Spec
	for _, c := range configs {
		systems = append(systems, c.Systems...)
	}
	return fmt.Sprintf("%s on %s, %s: %s",
		each(configs, "models", func(c *config.Config) string { return c.Model }),
		each(configs, "cards", cards), EnginesOf(systems), each(configs, "workloads", workload)) +
		budgets(systems) + caches(systems)
}

// budgets says how many tokens the sparse systems attend to; "" without one of a fixed size.
func budgets(systems []sim.Spec) string {
	var sizes []string
	for i := range systems {
		if s := &systems[i]; s.Sparse() && s.Selection.BudgetTokens > 0 {
			if size := strconv.Itoa(s.Selection.BudgetTokens); !slices.Contains(sizes, size) {
				sizes = append(sizes, size)
			}
		}
	}
	switch n := len(sizes); {
	case n == 0:
		return ""
	case n > 3:
		return fmt.Sprintf("; %d budgets", n)
	}
	return "; budget " + strings.Join(sizes, " or ") + " tokens"
}

// caches says which systems cache prefixes; "" if none does.
func caches(systems []sim.Spec) string {
	var with []string
	all := true
	for i := range systems {
		switch s := &systems[i]; {
		case !s.CachesPrefixes():
			all = false
		case !slices.Contains(with, s.Name):
			with = append(with, s.Name)
		}
	}
	switch {
	case len(with) == 0:
		return ""
	case all:
		return "; prefix cache on"
	}
	return "; prefix cache of " + strings.Join(with, ", ")
}

// each joins what configurations or runs say, each text once. It counts more than three.
func each[T any](all []T, noun string, of func(T) string) string {
	const most = 3
	var texts []string
	for _, one := range all {
		if text := of(one); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) > most {
		return fmt.Sprintf("%d %s", len(texts), noun)
	}
	return strings.Join(texts, " or ")
}

// workload says which requests come, and when.
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

// cards says how many GPUs of which card serve, as in "2 replicas of 4x h100-80gb", and what of the
// card is changed.
func cards(c *config.Config) string {
	var of []int
	for i := range c.Systems {
		if n := c.Systems[i].TensorParallel; !slices.Contains(of, n) {
			of = append(of, n)
		}
	}
	text := anyOf(of) + "x " + c.GPU
	if len(c.Replicas) > 1 || c.Replicas[0] > 1 {
		text = anyOf(c.Replicas) + " replicas of " + text
	}
	return text + config.Changed(c.Card) + originOfKernels(c)
}

// originOfKernels tells a reader that the card's kernels are imported or derived from another card.
// It returns "" if this project measured them on the card.
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
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " or ")
}

// arrivals says how the requests of a configuration arrive.
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

// traceName says where the lengths of requests come from.
func traceName(w *traces.Spec) string {
	if w.Trace == traces.Synthetic {
		return "prompts " + w.PromptLengths + ", outputs " + w.OutputLengths
	} else if w.Trace == traces.Sessions {
		return "sessions of " + w.Turns + " turns"
	}
	return files.Label(w.Trace)
}

// OriginOf says where the kernels of a card come from.
func OriginOf(k *hw.Kernels, derived bool) string {
	switch {
	case derived:
		return "derived from " + k.MeasuredOn
	case k.Imported():
		return "imported for this card"
	}
	return "measured on this card"
}

// Count is a number and its noun, such as "2 runs".
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
		for _, seed := range c.Seeds {
			if !slices.Contains(seeds, seed) {
				seeds = append(seeds, seed)
			}
		}
	}
	return listSeeds(seeds)
}

// listSeeds lists seeds, such as "seeds 1, 2".
func listSeeds(seeds []uint64) string {
	words := make([]string, len(seeds))
	for i, seed := range seeds {
		words[i] = strconv.FormatUint(seed, 10)
	}
	if len(seeds) == 1 {
		return "seed " + words[0]
	}
	return "seeds " + strings.Join(words, ", ")
}

// Ran says what the runs of result folders were, for the caption of their pictures; "" where no
// configuration is there.
func Ran(dirs ...string) string { return ran(configsIn(dirs)) }

// configsIn loads the configurations of the runs of result folders.
func configsIn(dirs []string) (configs []*config.Config) {
	for _, dir := range dirs {
		_, folders, _, err := runFolders(dir)
		if err == nil {
			configs = append(configs, configsOf(append([]string{dir}, folders...))...)
		}
	}
	return configs
}

func ran(configs []*config.Config) string {
	if len(configs) == 0 {
		return ""
	}
	return Asked(configs...) + "; " + Seeds(configs...)
}

// configsOf loads the configuration of the first folder or, where it has none, of all others. It
// leaves out one that cannot be read, such as one whose trace is on another machine: the numbers
// stand by themselves.
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
