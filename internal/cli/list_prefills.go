package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

type listPrefills struct {
	Name string `arg:"" optional:"" placeholder:"NAME" help:"One of them: its published accuracy, task by task."`
	JSON bool   `name:"json" help:"Print one JSON array, an object a row of the published tables, and nothing else."`
}

// abouts say what the values of system.prefill_attention stand for.
var abouts = map[string]string{
	sim.PrefillDense:      "all keys before",
	sim.PrefillMInference: "MInference: a pattern for each head, from system.prefill_pattern",
	string(pattern.AShape): "StreamingLLM: first and newest tokens (prefill_sink, " +
		"prefill_window)",
	string(pattern.VerticalSlash): "columns and diagonals, found for each prompt (prefill_vertical, " +
		"prefill_slash)",
	string(pattern.BlockSparse): "blocks of 64, found for each prompt (prefill_blocks)",
	string(pattern.Dilated):     "first tokens and every other one of a window",
	string(pattern.Strided):     "first and newest tokens, and every other one of a window",
	string(pattern.InfLLM):      "first and newest tokens, and blocks looked up",
}

// prefillModel is the model that the overview has scores of.
const prefillModel = "LLaMA-3-8B-262K"

func (l *listPrefills) Run(app *App) error {
	all := papers.PrefillAccuracy()
	if l.Name != "" {
		if names := config.PrefillAttentions(); !slices.Contains(names, l.Name) {
			return fmt.Errorf("no prefill attention %q; there are %s%s",
				l.Name, strings.Join(names, ", "), config.DidYouMean(l.Name, names))
		}
		all = slices.DeleteFunc(all, func(s papers.Scores) bool { return s.Prefill != l.Name })
	}
	switch {
	case l.JSON:
		return printJSON(app, all)
	case l.Name != "":
		listPrefill(app, l.Name, all)
	default:
		listAllPrefills(app, all)
	}
	return nil
}

// listAllPrefills prints a row for each, with the mean scores of one model.
func listAllPrefills(app *App, all []papers.Scores) {
	t := newTable(app.Stdout)
	t.AppendHeader(table.Row{"system.prefill_attention", "keys of a row", "at 1M",
		"InfiniteBench", "Retr.KV", "RULER", ""})
	for _, name := range config.PrefillAttentions() {
		row := table.Row{name, "", "", "-", "-", "-", abouts[name]}
		if h, ok := pattern.Published(pattern.Kind(name)); ok && h.Kind != pattern.Dense {
			row[1], row[2] = digits(h.Kept(1e5)), digits(h.Kept(1e6))
		}
		for _, s := range all {
			if s.Prefill != name || s.Model != prefillModel || s.Where != "Table 4" && s.Variant != "" {
				continue
			}
			if s.Benchmark == "RULER" {
				row[5] = score(s.Mean)
			} else {
				row[3], row[4] = score(s.Mean), score(s.Tasks[len(s.Tasks)-1].Value)
			}
		}
		t.AppendRow(row)
	}
	t.SetColumnConfigs(rightAligned(2, 6))
	t.Render()
	fmt.Fprintf(app.Stdout, "Scores of %s, %%, from Tables 2 to 4 of the MInference paper, means of "+
		"their "+
		"columns; no run here measures them. Keys: with the published sizes, at positions 100K and 1M.\n",
		prefillModel)
	fmt.Fprintf(app.Stdout, "Published mixes for system.prefill_pattern: %s. MInference's files "+
		"give nearly all "+
		"heads vertical-slash; the counts of its Fig. 11 are not published.\n",
		strings.Join(pattern.NamedMixes(), ", "))
}

// listPrefill prints the scores of one, task by task.
func listPrefill(app *App, name string, all []papers.Scores) {
	fmt.Fprintf(app.Stdout, "%s: %s\n", name, abouts[name])
	for _, benchmark := range []string{"InfiniteBench", "RULER"} {
		t := newTable(app.Stdout)
		for _, s := range all {
			if s.Benchmark != benchmark {
				continue
			}
			if t.Length() == 0 {
				head := table.Row{benchmark, "", "paper"}
				for _, task := range s.Tasks {
					head = append(head, task.Task)
				}
				t.AppendHeader(append(head, "mean"))
			}
			row := table.Row{s.Model, s.Variant, s.Where}
			for _, task := range s.Tasks {
				row = append(row, score(task.Value))
			}
			t.AppendRow(append(row, score(s.Mean)))
		}
		if t.Length() > 0 {
			t.SetColumnConfigs(rightAligned(4, 14))
			t.Render()
		}
	}
}

func score(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
