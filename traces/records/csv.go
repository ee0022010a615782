package records

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// csvColumns are the columns of a CSV record, in any order and among others. Times are in seconds.
// arrival_s is on any clock that starts at 0 or later; ttft_s and e2e_s count from the request's
// arrival. A failed request has no output tokens. An optional column prompt_id or content describes
// shared prompts (identity).
const csvColumns = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s"

// csvOther are other names of csvColumns: arrived_s as in traces, and the columns of LMBenchmark's
// multi-round-qa.py, whose generation_time counts from the first token and whose rows are in any
// order.
var csvOther = [5][]string{{"arrived_s", "launch_time"}, nil, {"generation_tokens"}, {"ttft"},
	{generationTime}}

const generationTime = "generation_time"

func readCSV(f *rows.File) ([]sent, error) {
	t, err := rows.NewTable(f)
	if err != nil {
		return nil, err
	}
	at, err := csvHeader(t)
	if err != nil {
		return nil, t.Fault(err)
	}
	prompts := newIdentity(t)
	var all []sent
	var last des.Time
	for {
		cells, err := t.Next()
		if err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if err := t.Whole(cells); err != nil {
			return nil, t.Fault(err)
		}
		s, err := csvRow(cells, at)
		if t.Column(generationTime) == at[4] {
			s.e2e += s.ttft
		}
		if err == nil && !s.failed {
			s.content, err = prompts.of(cells, s.prompt)
		}
		if err == nil && !s.failed && s.exact < last && t.Column("launch_time") != at[0] {
			err = rows.Wrong("arrival_s", cells[at[0]], "before the request above it; times run forward: "+
				"sort the file by arrival_s")
		}
		if err != nil {
			return nil, t.Fault(err)
		}
		s.where.line = t.Line()
		last = max(last, s.exact)
		all = append(all, s)
	}
}

// csvHeader returns the indices of csvColumns.
func csvHeader(t *rows.Table) (at [5]int, err error) {
	names := strings.Split(csvColumns, ",")
	for i, other := range csvOther {
		for _, name := range other {
			if t.Column(names[i]) < 0 {
				names[i] = name
			}
		}
	}
	var fields []field
	missing := 0
	for i, name := range names {
		if at[i] = t.Column(name); at[i] < 0 {
			missing++
		}
		fields = append(fields, field{strings.Split(csvColumns, ",")[i], at[i] >= 0})
	}
	if missing == len(names) {
		return at, rows.Wrong("header", strings.Join(t.Header, ","), known)
	}
	return at, required("header", "a record in CSV has "+csvColumns, fields...)
}

func csvRow(fields []string, at [5]int) (s sent, err error) {
	if s.output, err = rows.Tokens("output_tokens", fields[at[2]], 0); err != nil {
		return s, err
	}
	if s.output == 0 {
		return sent{failed: true}, nil
	}
	if s.prompt, err = rows.Tokens("prompt_tokens", fields[at[1]], 1); err != nil {
		return s, err
	}
	if s.exact, err = rows.Time("arrival_s", fields[at[0]], des.Second); err != nil {
		return s, err
	}
	s.where = place{start: "arrival_s", ttft: "ttft_s", last: "e2e_s"}
	if s.ttft, err = parseSeconds("ttft_s", fields[at[3]]); err != nil {
		return s, err
	}
	s.e2e, err = parseSeconds("e2e_s", fields[at[4]])
	return s, err
}

// parseSeconds parses a number; sent.check validates it.
func parseSeconds(key, text string) (float64, error) {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return 0, rows.Wrong(key, text, "missing or empty; a time is needed (0 output_tokens mark a "+
			"failed request)")
	case err != nil && !math.IsInf(v, 0):
		return 0, rows.Wrong(key, text, "not a time in numbers")
	}
	return v, nil
}
