//go:build ignore

// Gen_table makes longbench.csv, the built-in table of LongBench lengths, from
// a file with one row per LongBench request. From the repository root:
//
//	go run traces/gen_table.go [REQUESTS.csv]
//
// A row of the table is one column of one set: its golden mean, minimum and
// maximum, and its quantiles at 0, 0.5, ... 100 %.
//
// Prompt lengths are many and nearly all different: their quantiles are
// Hazen's (piecewise linear through the points (i-1/2)/n, x_i), which keep the
// mean when interpolated. Output lengths have heavy ties at the generation
// limit: theirs are the smallest values that reach the probability, so that
// only lengths that occurred are drawn.
package main

import (
	"encoding/csv"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

const steps = 200

var columns = []struct{ from, to string }{
	{"prompt_tokens_llama2", "prompt_llama2"},
	{"prompt_tokens_llama3", "prompt_llama3"},
	{"output_tokens_llama2_base", "output_base"},
	{"output_tokens_llama2_chat", "output_chat"},
	{"output_tokens_llama3_instruct", "output_instruct"},
}

type set struct {
	name, unit, maxNew string
	units              float64 // words or characters of all requests
	values             [][]float64
}

func main() {
	log.SetFlags(0)
	in := "../shared/data/longbench_requests.csv"
	if len(os.Args) > 1 {
		in = os.Args[1]
	}
	sets, err := read(in)
	if err != nil {
		log.Fatal(err)
	}
	if err := write("traces/longbench.csv", sets); err != nil {
		log.Fatal(err)
	}
}

func read(path string) ([]*set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	var sets []*set
	byName := map[string]*set{}
	for line, row := range rows[1:] {
		name := row[at["dataset"]]
		s := byName[name]
		if s == nil {
			s = &set{name: name, unit: row[at["unit"]], maxNew: row[at["max_new_tokens"]], values: make([][]float64, len(columns))}
			byName[name] = s
			sets = append(sets, s)
		}
		units, err := strconv.ParseFloat(row[at["length"]], 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: length: %w", path, line+2, err)
		}
		s.units += units
		for i, c := range columns {
			v, err := strconv.Atoi(row[at[c.from]])
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %s: %w", path, line+2, c.from, err)
			}
			s.values[i] = append(s.values[i], float64(v))
		}
	}
	slices.SortFunc(sets, func(a, b *set) int { return strings.Compare(a.name, b.name) })
	return sets, nil
}

func write(path string, sets []*set) error {
	var b strings.Builder
	b.WriteString("set,unit,requests,max_new_tokens,column,per_unit,mean,min,max,quantiles\n")
	for _, s := range sets {
		for i, c := range columns {
			x := slices.Clone(s.values[i])
			slices.Sort(x)
			sum := 0.0
			for _, v := range x {
				sum += v
			}
			perUnit, quantile := "", lowest
			if strings.HasPrefix(c.to, "prompt") {
				perUnit, quantile = fmt.Sprintf("%.6f", sum/s.units), hazen
			}
			q := make([]string, steps+1)
			for k := range q {
				q[k] = strconv.Itoa(int(math.Round(quantile(x, k))))
			}
			fmt.Fprintf(&b, "%s,%s,%d,%s,%s,%s,%.4f,%.0f,%.0f,%s\n", s.name, s.unit, len(x), s.maxNew, c.to,
				perUnit, sum/float64(len(x)), x[0], x[len(x)-1], strings.Join(q, " "))
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// hazen returns the k/steps quantile of sorted x, linear between (i-1/2)/n.
func hazen(x []float64, k int) float64 {
	h := float64(len(x)*k)/steps - 0.5
	i := int(math.Floor(h))
	switch {
	case i < 0:
		return x[0]
	case i >= len(x)-1:
		return x[len(x)-1]
	}
	return x[i] + (h-float64(i))*(x[i+1]-x[i])
}

// lowest returns the smallest x whose share of values at or below reaches k/steps.
func lowest(x []float64, k int) float64 {
	i := (len(x)*k+steps-1)/steps - 1
	return x[max(i, 0)]
}
