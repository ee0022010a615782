package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/patterns"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

// abouts describe the values of prefill.attention.
var abouts = map[string]string{
	sim.PrefillDense:      "all keys before",
	sim.PrefillMInference: "MInference: a pattern for each head, from prefill.pattern",
	string(pattern.AShape): "StreamingLLM: first and newest tokens (prefill.sink_tokens, " +
		"prefill.recent_tokens)",
	string(pattern.VerticalSlash): "columns and diagonals, found for each prompt (prefill.vertical, " +
		"prefill.slash)",
	string(pattern.BlockSparse): "blocks of 64, found for each prompt (prefill.blocks)",
	string(pattern.Dilated):     "first tokens and every other one of a window",
	string(pattern.Strided):     "first and newest tokens, and every other one of a window",
	string(pattern.InfLLM):      "first and newest tokens, and blocks looked up",
}

// prefillModel is the model whose scores the overview shows.
const prefillModel = "LLaMA-3-8B-262K"

// Prefills lists the prefill attentions, with the mean scores of one model.
func Prefills() (*doc.Doc, error) {
	all := papers.PrefillAccuracy().Scores
	t := doc.Table{Columns: doc.Columns("prefill.attention", ">keys of a row|at 100K",
		">|at 1M", ">InfiniteBench", ">Retr.KV", ">RULER", "")}
	for _, name := range config.PrefillAttentions() {
		cells := []any{name, "", "", "-", "-", "-", abouts[name]}
		if h, ok := pattern.Published(pattern.Kind(name)); ok && h.Kind != pattern.Dense {
			cells[1], cells[2] = h.Kept(1e5), h.Kept(1e6)
		}
		for _, s := range all {
			if s.Prefill != name || s.Model != prefillModel || s.Where != "Table 4" && s.Variant != "" {
				continue
			}
			if s.Benchmark == "RULER" {
				cells[5] = doc.Fixed(s.Mean(), "%.1f")
			} else {
				cells[3], cells[4] = doc.Fixed(s.Mean(), "%.1f"), doc.Fixed(s.Values[len(s.Values)-1], "%.1f")
			}
		}
		t.Add(cells...)
	}
	return listed("Prefill attention", t, fmt.Sprintf("Scores of %s, %%, from Tables 2 to 4 of the "+
		"MInference paper, means of their columns; no run here measures them. Keys: with the published "+
		"sizes, at positions 100K and 1M.", prefillModel), fmt.Sprintf("Published mixes for "+
		"prefill.pattern: %s. MInference's files give nearly all heads vertical-slash; the "+
		"counts of its Fig. 11 are not published.", strings.Join(pattern.NamedMixes(), ", ")))
}

// Prefill lists the published scores of one prefill attention per task.
func Prefill(name string) (*doc.Doc, error) {
	if names := config.PrefillAttentions(); !slices.Contains(names, name) {
		return nil, fmt.Errorf("no prefill attention %q; there are %s%s", name,
			strings.Join(names, ", "), nearest.Meant(name, names))
	}
	all := papers.PrefillAccuracy()
	d := &doc.Doc{Title: name, Lead: []string{name + ": " + abouts[name]}}
	for _, benchmark := range []string{"InfiniteBench", "RULER"} {
		t := doc.Table{Title: benchmark}
		for _, s := range all.Scores {
			if s.Benchmark != benchmark || s.Prefill != name {
				continue
			}
			if t.Columns == nil {
				t.Columns = doc.Columns("model", "variant", "paper")
				for _, task := range all.Tasks[benchmark] {
					t.Columns = append(t.Columns, doc.Columns(">"+task)...)
				}
				t.Columns = append(t.Columns, doc.Columns(">mean")...)
			}
			cells := []any{s.Model, s.Variant, s.Where}
			for _, v := range s.Values {
				cells = append(cells, doc.Fixed(v, "%.1f"))
			}
			t.Add(append(cells, doc.Fixed(s.Mean(), "%.1f"))...)
		}
		addTable(d, t)
	}
	return d, nil
}

// contexts are the prompt lengths, in tokens, for which a description shows the density.
var contexts = []int{30_000, 100_000, 300_000, 1_000_000}

// Patterns describes heads by their patterns: the share of dense causal attention that each
// computes.
func Patterns(groups []pattern.Group) *doc.Doc {
	t := doc.Table{Title: "Patterns", Columns: doc.Columns("pattern", ">heads"),
		Legend: []string{"% of dense causal attention, at prompts of the lengths in the head"}}
	for _, n := range contexts {
		t.Columns = append(t.Columns, doc.Columns(fmt.Sprintf(">%dK|%%", n/1000))...)
	}
	all, sums := 0.0, make([]float64, len(contexts))
	for _, g := range groups {
		cells := []any{g.Head.String(), heads(g.Heads)}
		for i, n := range contexts {
			density := g.Density(n)
			sums[i] += g.Heads * density
			cells = append(cells, doc.Fixed(100*density, "%.1f"))
		}
		all += g.Heads
		t.Add(cells...)
	}
	cells := []any{"all", heads(all)}
	for _, sum := range sums {
		cells = append(cells, doc.Fixed(100*sum/all, "%.1f"))
	}
	t.Rule()
	t.Add(cells...)
	return &doc.Doc{Title: "Patterns of heads", Tables: []doc.Table{t}}
}

// PatternSpace lists the candidates of a search, with the time of each kernel.
func PatternSpace(gpu *hw.Profile, model *llm.Model, tokens int, space []pattern.Head) doc.Table {
	t := doc.Table{Title: "Candidates", Columns: doc.Columns("candidate", ">kernel|us",
		">of dense|%")}
	for _, h := range space {
		t.Add(h.String(), 1e6*patterns.Cost(gpu, model, h, tokens),
			doc.Fixed(100*h.Density(tokens), "%.1f"))
	}
	return t
}

// FoundPatterns counts the heads of a model by the pattern found for them.
func FoundPatterns(groups []pattern.Group) doc.Table {
	t := doc.Table{Title: "Found", Columns: doc.Columns("found", ">heads")}
	for _, g := range groups {
		t.Add(g.Head.String(), heads(g.Heads))
	}
	return t
}

// heads formats a number of heads; in a published mix it may be a fraction.
func heads(n float64) doc.Cell { return doc.As(n, strconv.FormatFloat(n, 'f', -1, 64)) }
