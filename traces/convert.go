package traces

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Convert writes a trace in the project's own CSV and returns how many requests it has and what
// to be warned of. An empty format recognises the input. Times count from the first request; a
// trace without times makes a file without them. The file appears whole or not at all.
func Convert(ctx context.Context, in, format, out string) (requests int, warnings []warn.Warning,
	err error) {
	if format != "" {
		if err := oneOf("format", format, FormatNames()); err != nil {
			return 0, nil, err
		}
	}
	o := wholeFile(format)
	o.once = true
	src, _, err := openPath(in, o)
	if err != nil {
		return 0, nil, err
	}
	defer src.Close()
	f, err := files.Create(out, in)
	if err != nil {
		return 0, nil, err
	}
	defer f.Cleanup()
	requests, lost, err := writeOwn(ctx, f, src)
	if err != nil {
		return 0, nil, err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", out, err)
	}
	return requests, append(src.warnings(), lost...), nil
}

// ConvertTo is Convert to a stream.
func ConvertTo(ctx context.Context, w io.Writer, in, format string) (warnings []warn.Warning,
	err error) {
	o := wholeFile(format)
	o.once = true
	src, _, err := openPath(in, o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	_, lost, err := writeOwn(ctx, w, src)
	if err != nil {
		return nil, err
	}
	return append(src.warnings(), lost...), nil
}

// writeOwn writes every request of a source and returns their number and what is lost. There is a
// column session, and one content, where the first request has them.
func writeOwn(ctx context.Context, w io.Writer, src source) (n int,
	lost []warn.Warning, err error) {
	b := bufio.NewWriterSize(w, 64<<10)
	c := files.NewCSVWriter(b)
	unfolded := unfold(src)
	every := until(ctx, unfolded)
	a, err := every.next()
	if err != nil && err != io.EOF {
		return 0, nil, err
	}
	names, contents := a.Session != "", a.Content != nil
	header := []string{ownCSV.time, ownCSV.prompt, ownCSV.output, ownCSV.set}
	if names {
		header = append(header, ownCSV.session)
	}
	if contents {
		header = append(header, ownCSV.content)
	}
	from := 1
	if src.timed() {
		from = 0
	}
	if err := c.Write(header[from:]); err != nil {
		return 0, nil, err
	}
	unnamed, unknown := 0, 0
	var row []string
	for ; err == nil; a, err = every.next() {
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
	if err != io.EOF {
		return 0, nil, err
	}
	if err := c.Flush(); err != nil {
		return 0, nil, err
	}
	for what, count := range map[string]int{"session": unnamed, "content": unknown} {
		if count > 0 {
			lost = append(lost, warn.New(warn.TraceContent,
				"the %s of %s is not written: the first has none", what,
				plural(count, "request")))
		}
	}
	slices.SortFunc(lost, func(a, b warn.Warning) int { return cmp.Compare(a.Text, b.Text) })
	if unfolded != src {
		lost = append(lost, warn.New(warn.TraceContent,
			"turns of sessions do not wait for their answers any "+
				"more: to serve the rows as unrelated requests, remove the column session"))
	}
	return n, lost, b.Flush()
}

// decimal writes a time in seconds, exactly.
func decimal(t des.Time) string {
	return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second)
}
