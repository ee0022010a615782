package traces

import (
	"context"
	"fmt"
	"io"
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
	requests, lost, err := writeOwn(ctx, w, src)
	if err != nil {
		return 0, nil, err
	}
	return requests, append(src.warnings(), lost...), nil
}

// Write writes requests in the project's own CSV. They must be in order of time, with the first at
// 0.
func Write(w io.Writer, requests []sim.Arrival) error {
	_, _, err := writeOwn(context.Background(), w, &listed{left: requests})
	return err
}

// listed is a source of given requests.
type listed struct {
	generated
	left []sim.Arrival
}

func (*listed) timed() bool { return true }

func (l *listed) next() (a sim.Arrival, err error) {
	if len(l.left) == 0 {
		return a, io.EOF
	}
	a, l.left = l.left[0], l.left[1:]
	return a, nil
}

// writeOwn writes every request of a source and returns their number, with warnings of lost data.
// The columns session and content exist if the first request has them.
func writeOwn(ctx context.Context, w io.Writer, src source) (n int,
	lost []warn.Warning, err error) {
	c := files.NewCSVWriter(w)
	unfolded := unfold(src)
	a, err := unfolded.next()
	if err != nil && err != io.EOF {
		return 0, nil, err
	}
	names, contents := a.Session != "", a.Content != nil
	header := []string{"arrived_s", "prompt_tokens", "output_tokens", "set"}
	if names {
		header = append(header, "session")
	}
	if contents {
		header = append(header, "content")
	}
	from := 1
	if unfolded.timed() {
		from = 0
	}
	if err := c.Write(header[from:]); err != nil {
		return 0, nil, err
	}
	unnamed, unknown := 0, 0
	var row []string
	for ; err == nil; a, err = unfolded.next() {
		if err := ctx.Err(); err != nil {
			return 0, nil, err
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
		n++
	}
	if err == io.EOF {
		err = c.Flush()
	}
	if err != nil {
		return 0, nil, err
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
	if unfolded != src {
		lost = append(lost, warn.New(warn.TraceContent,
			"turns of sessions do not wait for their answers any "+
				"more: to serve the rows as unrelated requests, remove the column session"))
	}
	return n, lost, nil
}

// decimal formats a time in seconds, exactly.
func decimal(t des.Time) string {
	return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second)
}
