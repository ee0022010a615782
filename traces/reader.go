package traces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// A source yields lengths, and times if it is timed, until io.EOF.
type source interface {
	next() (sim.Arrival, error)
	timed() bool              // At is meaningful, counts from the first request, never falls
	warnings() []warn.Warning // so far
	// rest reads over what is left and returns how many rows that was, up to what cannot be read.
	rest() (int, error)
	Close() error
}

// until is a source that ends with a context, as it may have more than anybody waits for.
func until(ctx context.Context, src source) source { return &bounded{src, ctx} }

type bounded struct {
	source
	ctx context.Context
}

func (b *bounded) next() (sim.Arrival, error) {
	if err := b.ctx.Err(); err != nil {
		return sim.Arrival{}, err
	}
	return b.source.next()
}

// A row is one request as its line gives it.
type row struct {
	at     des.Time // on the file's own clock
	stamp  string   // at as written
	prompt int      // tokens, at least 1
	output int      // tokens, at least 1
	set    string
	// session names the conversation, where the file does
	session string
	content *prefix.Content // nil where it does not say
	skip    skip
}

// skip says why a row is passed over.
type skip int

const (
	keep     skip = iota
	failed        // 0 tokens of prompt or output: never served
	excluded      // a set that was not asked for
)

// A decoder reads the lines of one format.
type decoder interface {
	decode(line []byte) (row, error)
	timeKey() string // the key of the time; empty when the file has none
}

// reader turns a file into requests, one line at a time.
type reader struct {
	lines *lines
	dec   decoder
	close func() error

	member  bool // one of several files: it may have no request of the sets asked for
	ordered bool // refuse times that run back
	started bool
	first   des.Time
	last    row // the request before

	kept, failed, excluded int
	other                  string // an excluded set, for the message
	bare, firstBare        int    // rows without the content that others of the format have; its line
}

func (r *reader) timed() bool { return r.dec.timeKey() != "" }

func (r *reader) Close() error {
	if r.close == nil {
		return nil
	}
	f := r.close
	r.close = nil
	return f()
}

func (r *reader) next() (sim.Arrival, error) {
	for {
		line, err := r.lines.next()
		if err == io.EOF {
			return sim.Arrival{}, r.end()
		}
		if err != nil {
			return sim.Arrival{}, err
		}
		row, err := r.dec.decode(line)
		if err != nil {
			return sim.Arrival{}, r.truncated(r.fault(err))
		}
		switch row.skip {
		case failed:
			r.failed++
			continue
		case excluded:
			r.excluded++
			r.other = row.set
			continue
		}
		a := sim.Arrival{Prompt: row.prompt, Output: row.output, Set: row.set, Session: row.session,
			Content: row.content}
		if r.timed() && r.ordered {
			if a.At, err = r.place(row); err != nil {
				return sim.Arrival{}, err
			}
		}
		r.kept++
		r.look(a.Content == nil)
		return a, nil
	}
}

// look notes what a row lacks of what prompts share.
func (r *reader) look(bare bool) {
	if _, ok := r.dec.(*mooncake); !ok || !bare {
		return
	}
	if r.bare++; r.bare == 1 {
		r.firstBare = r.lines.number
	}
}

// place returns the time of a row since the first.
func (r *reader) place(row row) (des.Time, error) {
	if !r.started {
		r.started, r.first, r.last = true, row.at, row
	}
	if row.at < r.last.at {
		return 0, r.fault(&valueError{r.dec.timeKey(), row.stamp, fmt.Sprintf("before the request "+
			"above it (%s); sort the file by %s, or use arrivals that make their own times",
			short(r.last.stamp), r.dec.timeKey())})
	}
	r.last = row
	return row.at - r.first, nil
}

// end returns io.EOF, or an error when the file held no request.
func (r *reader) end() error {
	switch {
	case r.kept > 0, r.member && r.excluded > 0:
		return io.EOF
	case r.excluded > 0:
		return &LineError{File: r.lines.file, Problem: fmt.Sprintf("no requests of workload.datasets "+
			"in it, but %d of others such as %q", r.excluded, r.other)}
	case r.failed > 0:
		return &LineError{File: r.lines.file, Problem: "no requests in it but " +
			plural(r.failed, "row") + " of 0 tokens, never served"}
	}
	return &LineError{File: r.lines.file, Problem: "no requests in it"}
}

// rest goes on behind a row that cannot be read, and returns what is wrong with the first such.
func (r *reader) rest() (n int, damage error) {
	check := func(line []byte) error { return decodeJSON(line, new(struct{})) }
	if csv, ok := r.dec.(*csvDecoder); ok {
		check = csv.check
	}
	for {
		line, err := r.lines.next()
		if err == nil && damage == nil {
			if wrong := check(line); wrong != nil {
				damage = r.truncated(r.fault(wrong))
			}
		}
		if err == io.EOF {
			return n, damage
		} else if err != nil {
			return n, cmp.Or(damage, err)
		}
		n++
	}
}

// fault adds file and line to the error of a decoder.
func (r *reader) fault(err error) *LineError {
	e := &LineError{File: r.lines.file, Line: r.lines.number, Problem: err.Error()}
	var v *valueError
	if errors.As(err, &v) {
		e.Key, e.Value, e.Problem = v.key, v.value, v.problem
	}
	return e
}

// truncated adds that a faulty line is the last and has no line end.
func (r *reader) truncated(e *LineError) *LineError {
	if !r.lines.ended {
		e.Problem += " (last line, without a line end: the file seems cut short)"
	}
	return e
}

func (r *reader) warnings() []warn.Warning {
	var w []warn.Warning
	if r.failed > 0 {
		w = append(w, warn.New(warn.RowsLeft, "%s left out that no service answered (0 prompt or output "+
			"tokens): %s", plural(r.failed, "row"), r.lines.file).About("failed"))
	}
	if r.excluded > 0 && !r.member {
		w = append(w, unnamed(r.excluded, r.lines.file))
	}
	if _, csv := r.dec.(*csvDecoder); csv && !r.lines.ended {
		w = append(w, warn.New(warn.TraceContent,
			"the last line has no line end: %s:%d; if the file was cut "+
				"short, its last number may be, too", r.lines.file, r.lines.number).About("last line"))
	}
	switch d := r.dec.(type) {
	case *csvDecoder:
		w = append(w, unread("column", d.dropped, d.columns(), r.lines.file)...)
		if d.pictured > 0 {
			w = append(w, warn.New(warn.TraceContent,
				"%d of %s have images (%s): their encoder's time and tokens are "+
					"left out: %s", d.pictured, plural(r.kept, "request"), d.images, r.lines.file).About("images"))
		}
	case *mooncake:
		w = append(w, d.dropped.warning(r.lines.file)...)
	case *longBench:
		w = append(w, d.dropped.warning(r.lines.file)...)
		w = append(w, estimated(r.lines.file, d.tokenizer))
	}
	if r.bare > 0 && r.bare < r.kept {
		w = append(w, warn.New(warn.TraceContent,
			"%s without hash_ids, though others have them, share nothing: the "+
				"first in %s:%d", plural(r.bare, "row"), r.lines.file, r.firstBare).About("hash_ids"))
	}
	return w
}

// unread warns of what a file has and no reader takes, each with the name that it is near to.
func unread(what string, names, known []string, file string) []warn.Warning {
	if len(names) == 0 {
		return nil
	}
	const most = 8
	said := make([]string, 0, most)
	for i, name := range names {
		if i == most {
			said = append(said, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		text := strconv.Quote(short(name))
		if near := nearest.Name(name, known); near != "" {
			text += fmt.Sprintf(" (did you mean %q?)", near)
		}
		said = append(said, text)
	}
	return []warn.Warning{warn.New(warn.TraceContent, "%s not read: %s: %s", plural(len(names), what),
		strings.Join(said, ", "), file).About("not read")}
}

// estimated warns that a file has no token counts.
func estimated(file string, t Tokenizer) warn.Warning {
	return warn.New(warn.Tokenizer,
		"%s prompt tokens are estimated from words or characters, good to 5 %%: %s",
		t, file).About("estimated")
}

// unnamed warns of the requests of sets that were not asked for.
func unnamed(n int, file string) warn.Warning {
	return warn.New(warn.RowsLeft, "%s left out of sets that workload.datasets does not name: %s",
		plural(n, "row"), file).About("sets")
}
