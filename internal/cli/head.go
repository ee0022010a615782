package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/report"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// head says what is about to run.
type head struct {
	configs []*config.Config
	chosen  []capacity.Chosen
	tooLong string // share of the prompts; "" for none
}

// headOf chooses the rates of configurations that need some and name none, and finds out what their
// head says.
func headOf(ctx context.Context, app *App, all ...*config.Config) (*head, error) {
	h := &head{configs: all}
	bar := newProgress(app.Stderr, "requests of short runs that show what the systems sustain")
	defer bar.close()
	short := func(ctx context.Context, p config.Point, sink run.Sink) (sim.Summary, error) {
		bar.planned(p.Workload.Requests)
		sink.Finished = bar.finished
		return app.Run(ctx, p, sink)
	}
	var err error
	if h.chosen, err = capacity.ChooseRates(ctx, short, all...); err == nil {
		h.tooLong, err = capacity.TooLong(all...)
	}
	if ctx.Err() != nil {
		return nil, errInterrupted
	}
	return h, err
}

// print prints the line about so many runs, and how rates were chosen.
func (h *head) print(w io.Writer, points int) {
	var seeds []string
	for _, c := range h.configs {
		for _, seed := range c.Seeds {
			if text := strconv.FormatUint(seed, 10); !slices.Contains(seeds, text) {
				seeds = append(seeds, text)
			}
		}
	}
	fmt.Fprintf(w, "%s, %s %s: %s", h.load(), plural(len(seeds), "seed"),
		strings.Join(seeds, ", "), count(points, "run"))
	if h.tooLong != "" {
		fmt.Fprint(w, "; ", h.tooLong)
	}
	fmt.Fprintln(w, ".")
	for i := range h.chosen {
		of := ""
		if len(h.chosen) > 1 {
			of = h.chosen[i].Model + ": "
		}
		fmt.Fprintf(w, "No rate is set. %s%s; --set workload.rate=LIST names others.\n", of,
			&h.chosen[i])
	}
}

// load says what serves which requests, and how these arrive.
func (h *head) load() string {
	var systems []sim.Spec
	for _, c := range h.configs {
		systems = append(systems, c.Systems...)
	}
	return inCell(fmt.Sprintf("%s on %s, %s: %s",
		h.each("models", func(c *config.Config) string { return c.Model }), h.each("cards", cards),
		report.EnginesOf(systems), h.each("workloads", workload)))
}

// each joins what the configurations say, each once; of many, it says how many there are.
func (h *head) each(noun string, of func(*config.Config) string) string {
	const most = 3
	var texts []string
	for _, c := range h.configs {
		if text := of(c); !slices.Contains(texts, text) {
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
		requests = count(n, "request")
	} else if n := c.Workload.Sessions; n > 0 {
		requests = "all turns of " + count(n, "session")
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
	var changes []string
	for _, key := range slices.Sorted(maps.Keys(c.Card)) {
		changes = append(changes, key+" = "+config.Show(c.Card[key]))
	}
	if len(changes) > 0 {
		text += " (changed: " + strings.Join(changes, ", ") + ")"
	}
	return text + originOfKernels(c)
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
		if origin := "kernels " + originOf(k, derived); !slices.Contains(origins, origin) {
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
		return w.Arrivals + " arrivals in " + count(len(w.Stages), "stage")
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
