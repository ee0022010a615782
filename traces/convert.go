package traces

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Convert writes a trace in the project's own CSV and returns the number of requests and warnings.
// An empty format is detected from the input. Times count from the first request. A trace without
// times makes a file without times. The file is written atomically.
func Convert(ctx context.Context, in, format, out string) (requests int, warnings []warn.Warning,
	err error) {
	f, err := files.Create(out, in)
	if err != nil {
		return 0, nil, err
	}
	defer f.Cleanup()
	if requests, warnings, err = ConvertTo(ctx, f, in, format); err != nil {
		return 0, nil, err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", out, err)
	}
	return requests, warnings, nil
}

// ConvertTo writes the output of Convert to w.
func ConvertTo(ctx context.Context, w io.Writer, in, format string) (requests int,
	warnings []warn.Warning, err error) {
	src, _, err := openOnce(in, format, Llama2)
	if err != nil {
		return 0, nil, err
	}
	defer src.Close()
	all, timed := each(src)
	requests, lost, err := writeOwn(ctx, w, timed, all)
	if err != nil {
		return 0, nil, err
	}
	if _, turns := src.(*sessions); turns {
		lost = append(lost, warn.New(warn.TraceContent,
			"turns of sessions do not wait for their answers any "+
				"more: to serve the rows as unrelated requests, remove the column session"))
	}
	return requests, append(src.warnings(), lost...), nil
}

// Write writes requests in the project's own CSV. They must be in order of time, with the first at
// 0.
func Write(w io.Writer, requests []sim.Arrival) error {
	_, _, err := writeOwn(context.Background(), w, true,
		func(yield func(sim.Arrival, error) bool) {
			for _, a := range requests {
				if !yield(a, nil) {
					return
				}
			}
		})
	return err
}

// writeOwn writes requests and returns their number, with warnings of lost data. The columns
// session and content exist if the first request has them.
func writeOwn(ctx context.Context, w io.Writer, timed bool,
	all iter.Seq2[sim.Arrival, error]) (n int, lost []warn.Warning, err error) {
	c := files.NewCSVWriter(w)
	from := 1
	if timed {
		from = 0
	}
	var names, contents bool
	unnamed, unknown := 0, 0
	var row []string
	for a, err := range all {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return 0, nil, err
		}
		if n++; n == 1 {
			row = []string{"arrived_s", "prompt_tokens", "output_tokens", "set"}
			if names = a.Session != ""; names {
				row = append(row, "session")
			}
			if contents = a.Content != nil; contents {
				row = append(row, "content")
			}
			if err := c.Write(row[from:]); err != nil {
				return 0, nil, err
			}
		}
		row = append(row[:0], decimal(a.At), strconv.Itoa(a.Prompt), strconv.Itoa(a.Output),
			lineName(a.Set))
		if names {
			row = append(row, lineName(a.Session))
		} else if a.Session != "" {
			unnamed++
		}
		if contents {
			row = append(row, contentText(a.Content))
		} else if a.Content != nil {
			unknown++
		}
		if err := c.Write(row[from:]); err != nil {
			return 0, nil, err
		}
	}
	for _, column := range []struct {
		name  string
		count int
	}{{"content", unknown}, {"session", unnamed}} {
		if column.count > 0 {
			lost = append(lost, warn.New(warn.TraceContent,
				"the %s of %s is not written: the first has none", column.name,
				rows.Plural(column.count, "request")))
		}
	}
	return n, lost, c.Flush()
}

// decimal formats a time in seconds, exactly.
func decimal(t des.Time) string {
	return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second)
}
