package cli

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

// introduce says what is about to run.
func introduce(w io.Writer, c *config.Config, byDefault bool, points int) {
	if byDefault && !c.Own {
		fmt.Fprintf(w,
			"No CONFIG given: running the built-in experiment %q; --set KEY=VALUE changes it.\n", c.Name)
	}
	seeds := make([]string, len(c.Seeds))
	for i, s := range c.Seeds {
		seeds[i] = strconv.FormatUint(s, 10)
	}
	requests := "all its requests"
	if n := c.Workload.Requests; n > 0 {
		requests = count(n, "request")
	} else if n := c.Workload.Sessions; n > 0 {
		requests = "all turns of " + count(n, "session")
	} else if !c.Workload.FromFile() {
		requests = "the requests of its stages"
	}
	fmt.Fprintf(w, "%s on %s, %s: %s, %s, %s, %s %s: %s.\n",
		c.Model, cards(c), engines(c.Systems), traceName(&c.Workload), requests, arrivals(c),
		plural(len(c.Seeds), "seed"), strings.Join(seeds, ", "), count(points, "run"))
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
	return text
}

// anyOf lists numbers, as in "1 or 2".
func anyOf(all []int) string {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " or ")
}

// engines names the engine of the systems, or which systems have which.
func engines(systems []sim.Spec) string {
	all := enginesOf(systems)
	if len(all) == 1 {
		return "engine " + all[0].engine
	}
	return "engines " + enginesText(all)
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

// printFiles names the files that were written, and where every run is kept.
func printFiles(w io.Writer, out string, files []string, points string) {
	listFiles(w, out, files)
	fmt.Fprintln(w, "  "+within(out, points)+string(filepath.Separator)+
		"   every run's configuration, summary and requests")
}

// answerFiles lists what the folder of an answer has: files of the answer, the question, and
// pictures with the tables of their numbers.
func answerFiles(out string, files, pictures []string) []string {
	all := append(slices.Clone(files), filepath.Join(out, run.QuestionFile))
	for _, p := range pictures {
		all = append(all, p)
		table := strings.TrimSuffix(p, filepath.Ext(p)) + ".csv"
		if _, err := os.Stat(table); err == nil && !slices.Contains(all, table) {
			all = append(all, table)
		}
	}
	return all
}

// listFiles names files by what they are called in a result folder.
func listFiles(w io.Writer, out string, files []string) {
	fmt.Fprintf(w, "\nFiles in %s:\n", out)
	for _, f := range files {
		fmt.Fprintln(w, "  "+within(out, f))
	}
}

// within is a path as seen from a folder, whole where it is outside.
func within(folder, path string) string {
	if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func count(n int, noun string) string { return strconv.Itoa(n) + " " + plural(n, noun) }
