package traces

import (
	"bytes"
	"cmp"
	_ "embed"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// packedTable has, for each set of LongBench v1 (Bai et al., ACL 2024; 4,750 requests) and each
// kind of length, mean, minimum, maximum and the quantiles at 0, 0.5, ... 100 %. Quantiles of
// prompts are Hazen's (linear through the points (i-1/2)/n, x_i), which keep the mean under
// interpolation. Quantiles of outputs, which have many ties at the generation limit, are the
// smallest values that reach the probability. Prompt tokens are estimates within 5 %: words or
// characters times a ratio measured per set and tokenizer.
//
//go:embed longbench.csv.gz
var packedTable []byte

// A set is one LongBench dataset of the built-in table.
type set struct {
	name         string
	unit         string // of LongBench's length field: words | chars
	requests     int
	maxNewTokens int // the benchmark's generation limit
	columns      map[string]column
}

// A column is the distribution of one kind of length in a set, in tokens.
type column struct {
	perUnit        float64 // prompt tokens per word or character; 0 for outputs
	mean, min, max float64
	quantiles      []float64 // at equal steps of probability from 0 to 1
}

// loadTable returns the built-in table, parsed once. It must not be changed.
var loadTable = sync.OnceValue(parseTable)

// parseTable panics on an error, because the table is part of the program.
func parseTable() []set {
	text, err := rows.New("longbench.csv.gz", bytes.NewReader(packedTable))
	if err != nil {
		panic(err)
	}
	table, err := rows.NewReader(text)
	if err != nil {
		panic(err)
	}
	var sets []set
	for {
		f, err := table.Record()
		if err == io.EOF {
			return sets
		} else if err != nil {
			panic(err)
		}
		if name, n := f.Text("set"), len(sets); n == 0 || sets[n-1].name != name {
			sets = append(sets, set{
				name: strings.Clone(name), unit: strings.Clone(f.Text("unit")),
				requests:     int(number(f.Text("requests"))),
				maxNewTokens: int(number(f.Text("max_new_tokens"))),
				columns:      make(map[string]column, 5),
			})
		}
		c := column{perUnit: number(cmp.Or(f.Text("per_unit"), "0")), mean: number(f.Text("mean")),
			min: number(f.Text("min")), max: number(f.Text("max"))}
		for text := range strings.SplitSeq(f.Text("quantiles"), " ") {
			c.quantiles = append(c.quantiles, number(text))
		}
		sets[len(sets)-1].columns[strings.Clone(f.Text("column"))] = c
	}
}

func number(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("traces: longbench.csv: " + err.Error())
	}
	return v
}

func (s *set) prompt(t Tokenizer) column     { return s.columns["prompt_"+string(t)] }
func (s *set) output(model string) column    { return s.columns["output_"+model] }
func (s *set) tokens(t Tokenizer, n int) int { return int(float64(n)*s.prompt(t).perUnit + 0.5) }

// interpolated returns the inverse CDF at u in [0, 1), linear between quantiles.
func (c *column) interpolated(u float64) float64 {
	h := u * float64(len(c.quantiles)-1)
	i := int(h)
	lo, hi := c.quantiles[i], c.quantiles[i+1]
	return lo + (h-float64(i))*(hi-lo)
}

// stepped returns the inverse CDF at u in [0, 1), restricted to values that occurred. Output
// lengths need it: a set whose outputs are 2 or 513 tokens has none in between.
func (c *column) stepped(u float64) float64 {
	return c.quantiles[1+int(u*float64(len(c.quantiles)-1))]
}

// canonicalSet returns the table's name of a set. Papers write multifieldqa; LongBench-E files have
// the suffix _e.
func canonicalSet(name string) string {
	name = strings.TrimSuffix(name, "_e")
	if name == "multifieldqa" {
		return "multifieldqa_en"
	}
	return name
}

func setNames(sets []set) []string {
	names := make([]string, len(sets))
	for i, s := range sets {
		names[i] = s.name
	}
	return names
}

func findSet(sets []set, name string) *set {
	for i := range sets {
		if sets[i].name == name {
			return &sets[i]
		}
	}
	return nil
}
