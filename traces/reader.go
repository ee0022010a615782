package traces

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A source yields lengths, with times if it is timed, until io.EOF.
type source interface {
	next() (sim.Arrival, error)
	origin
}

// origin is what the requests of a source come from.
type origin interface {
	timed() bool              // times are valid, count from the first request, never decrease
	texts() bool              // a tokenizer determines prompt lengths
	warnings() []warn.Warning // so far
	// rest skips the remaining rows or turns and returns their number, up to the first unreadable.
	rest() (int, error)
	Close() error
}

// A row is one request as recorded.
type row struct {
	sim.Arrival                // At is on the file's own clock
	stamp       string         // At as written
	took        des.Time       // from At to the end of its answer, if the file has it
	later       bool           // follows the session's row before: it has a pause instead of a time
	pause       des.Time       // of a later row, from the end of the row before; below 0: a think time
	asked       []prefix.Piece // added to the session since the last answer; nil: Prompt is the whole
	answer      uint64         // id of the answer's text, of a row with asked
	image       bool           // has an image, which is not served
	skip        skip
}

// skip is the reason to skip a row.
type skip int

const (
	keep     skip = iota
	failed        // 0 tokens of prompt or output: never served
	excluded      // a set that is not selected
	part          // the beginning of the next row
)

// next returns the next request, or io.EOF.
func (d *reader) next() (sim.Arrival, error) {
	row, err := d.row()
	switch {
	case err != nil:
	case d.hasTime && d.ordered:
		row.At, err = d.place(row)
	default:
		row.At = 0
	}
	return row.Arrival, err
}

// place returns the time of a row since the first row.
func (d *reader) place(row row) (des.Time, error) {
	if !d.started {
		d.started, d.first, d.last = true, row.At, row
	}
	if row.At < d.last.At {
		return 0, d.Fault(rows.Wrong(d.timeKey(), row.stamp, fmt.Sprintf("before the request "+
			"above it (%s); sort the file by %s, or use arrivals that make their own times",
			rows.Short(d.last.stamp), d.timeKey())))
	}
	row.stamp = strings.Clone(row.stamp) // do not retain the whole record
	d.last = row
	return row.At - d.first, nil
}

// end returns io.EOF, or an error if the file had no request.
func (d *reader) end() error {
	e := &rows.Error{File: d.File.Name, Problem: "no requests in it"}
	switch {
	case d.served() > 0, d.member && d.excluded > 0:
		return io.EOF
	case d.others > 0:
		e.Key, _, _ = strings.Cut(d.list, "|")
		e.Line, e.Problem = d.firstOther, "no request in it, nor in any other, but "+d.without
	case d.excluded > 0:
		e.Problem = fmt.Sprintf("no requests of longbench.datasets in it, but %d of others such as %q",
			d.excluded, d.other)
	case d.failed > 0:
		e.Problem += " but " + rows.Plural(d.failed, "row") + " of 0 tokens, never served"
	}
	return e
}

// unread warns of fields of a file that are not known: columns, or keys of the first record and of
// the requests in its list. Known names may go on behind a dot, and are separated by other
// characters than letters and spaces.
func (d *reader) unread() []warn.Warning {
	var names, said []string
	for name := range strings.FieldsFuncSeq(d.names(), func(r rune) bool {
		return strings.ContainsRune(",|+=", r)
	}) {
		name, _, _ = strings.Cut(name, ".")
		names = append(names, strings.ToLower(name))
	}
	parts := slices.Compact(slices.Sorted(slices.Values(d.parts)))
	for _, name := range slices.Concat(d.Names, parts) {
		if name != "" && !slices.Contains(names, strings.ToLower(name)) {
			said = append(said, strconv.Quote(rows.Short(name)))
		}
	}
	if len(said) == 0 {
		return nil
	}
	what, n := "column", len(said)
	if d.JSON() {
		what = "key"
	}
	if most := 8; n > most {
		said = append(said[:most], fmt.Sprintf("%d more", n-most))
	}
	return []warn.Warning{warn.New(warn.TraceContent, "%s not read: %s: %s", rows.Plural(n, what),
		strings.Join(said, ", "), d.File.Name).About("not read")}
}

// estimated warns that a file has no token counts.
func estimated(file string, t Tokenizer) warn.Warning {
	return warn.New(warn.Tokenizer,
		"%s prompt tokens are estimated from words or characters, good to 5 %%: %s",
		t, file).About("estimated")
}

// unnamed warns of the requests in sets that are not selected.
func unnamed(n int, file string) warn.Warning {
	return warn.New(warn.RowsLeft, "%s left out of sets that longbench.datasets does not name: %s",
		rows.Plural(n, "row"), file).About("sets")
}
