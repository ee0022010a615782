package traces

import (
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
)

// measuredColumns are those of a record in CSV, in any order and among others. Times are in
// seconds; arrival_s is on any clock that starts at 0 or later, ttft_s and e2e_s count from the
// request's arrival. No output tokens mark a request that failed. A column prompt_id or content
// says what prompts have in common (identity).
const measuredColumns = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s"

func readMeasuredCSV(l *lines) ([]sent, error) {
	r := &reader{lines: l}
	header, err := l.next()
	if err == io.EOF {
		return nil, &LineError{File: l.file, Problem: "empty file"}
	} else if err != nil {
		return nil, err
	}
	names, err := splitCSV(nil, header)
	if err != nil {
		return nil, r.fault(err)
	}
	at, err := measuredHeader(names)
	if err != nil {
		return nil, r.fault(err)
	}
	prompts := newIdentity(names)
	var all []sent
	var fields []string
	var last des.Time
	for {
		line, err := l.next()
		if err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if fields, err = splitCSV(fields[:0], line); err != nil {
			return nil, r.truncated(r.fault(err))
		}
		if len(fields) != len(names) {
			return nil, r.truncated(
				r.fault(&valueError{"line", string(line), "has " + plural(len(fields), "field") +
					", the header has " + plural(len(names), "column")}))
		}
		s, err := measuredRow(fields, at)
		if err == nil && !s.failed {
			s.content, err = prompts.of(fields, s.prompt)
		}
		if err != nil {
			return nil, r.truncated(r.fault(err))
		}
		s.where.line = l.number
		if !s.failed && s.exact < last {
			return nil, r.truncated(
				r.fault(&valueError{"arrival_s", fields[at[0]], "before the request above it; times run " +
					"forward: sort the file by arrival_s"}))
		}
		last = max(last, s.exact)
		all = append(all, s)
	}
}

// measuredHeader returns where each of measuredColumns is.
func measuredHeader(names []string) (at [5]int, err error) {
	var missing []string
	want := strings.Split(measuredColumns, ",")
	if columnOf(names, want[0]) < 0 && columnOf(names, ownCSV.time) >= 0 {
		want[0] = ownCSV.time // as traces have it
	}
	for i, name := range want {
		if at[i] = columnOf(names, name); at[i] < 0 {
			missing = append(missing, name)
		} else if columnOf(names[at[i]+1:], name) >= 0 {
			return at, &valueError{"header", strings.Join(names, ","), "has column " + name + " twice"}
		}
	}
	switch {
	case len(missing) == len(want):
		return at, &valueError{"header", strings.Join(names, ","), measuredKnown}
	case len(missing) > 0:
		return at, &valueError{"header", strings.Join(names, ","), "lacks " +
			strings.Join(missing, ", ") + "; a record in CSV has " + measuredColumns}
	}
	return at, nil
}

func measuredRow(fields []string, at [5]int) (s sent, err error) {
	if s.output, err = parseTokens("output_tokens", fields[at[2]], 0); err != nil {
		return s, err
	}
	if s.output == 0 {
		return sent{failed: true}, nil
	}
	if s.prompt, err = parseTokens("prompt_tokens", fields[at[1]], 1); err != nil {
		return s, err
	}
	if s.exact, err = parseTime("arrival_s", fields[at[0]], des.Second); err != nil {
		return s, err
	}
	s.where = place{start: "arrival_s", ttft: "ttft_s", last: "e2e_s"}
	if s.ttft, err = parseSeconds("ttft_s", fields[at[3]]); err != nil {
		return s, err
	}
	s.e2e, err = parseSeconds("e2e_s", fields[at[4]])
	return s, err
}

// parseSeconds reads a number; sent.check judges it.
func parseSeconds(key, text string) (float64, error) {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case text == "":
		return 0, &valueError{key, text, "missing or empty; a time is needed (0 output_tokens mark a " +
			"failed request)"}
	case err != nil && !math.IsInf(v, 0):
		return 0, &valueError{key, text, "not a time in numbers"}
	}
	return v, nil
}
