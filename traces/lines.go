package traces

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unique"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// reader reads the requests of a file in one format.
type reader struct {
	Format
	*rows.Reader
	more      func(rec rows.Record, r *row) error
	hasTime   bool
	tokenizer Tokenizer
	ordered   bool // reject decreasing times
	member    bool // one of several files: it may have no selected request

	parts []string // names of the fields in the list of the first record
	ready []row    // of the record last read
	one   [1]row
	counts

	started bool // first and last are valid
	first   des.Time
	last    row // the previous request
}

// counts are what has been read so far.
type counts struct {
	records, others  int    // all; without a request
	firstOther       int    // line
	n                int    // rows
	failed, excluded int    // of them: never served; of sets that are not selected
	other            string // an excluded set, for the message
	bare, firstBare  int    // served rows without content; the first such line
	pictured         int    // served rows with an image, audio or video
	fractions        int    // served rows at a fraction of Mooncake's ms
}

// served returns the number of rows that are requests.
func (c *counts) served() int { return c.n - c.failed - c.excluded }

func newReader(f Format, from *rows.Reader, o *options) *reader {
	d := &reader{Format: f, Reader: from, tokenizer: o.tokenizer, ordered: o.Arrivals == ArrivalsTrace}
	if f.more != nil {
		d.more = f.more(o)
	}
	d.hasTime = f.time != "" && (from.Has(f.time) || f.only != "" ||
		f.list != "" && (from.Has(f.list+".0."+f.time) || from.Has(f.list+".1."+f.time)))
	return d
}

func (d *reader) timed() bool { return d.hasTime }
func (d *reader) texts() bool { return d.Format.texts }

// timeKey returns the name of the time that the file has.
func (d *reader) timeKey() string {
	for name := range strings.SplitSeq(d.time, "|") {
		if d.Has(name) {
			return name
		}
	}
	return d.time
}

// row returns the next served request, or io.EOF.
func (d *reader) row() (row, error) {
	for {
		for len(d.ready) == 0 {
			rec, err := d.Record()
			if err == io.EOF {
				return row{}, d.end()
			} else if err != nil {
				return row{}, err
			}
			d.records++
			if d.ready, err = d.decode(rec); err != nil {
				return row{}, d.Fault(err)
			}
			if len(d.ready) == 0 {
				if d.others++; d.others == 1 {
					d.firstOther = d.Line()
				}
			}
		}
		r := d.ready[0]
		d.ready = d.ready[1:]
		switch d.n++; r.skip {
		case failed:
			d.failed++
			continue
		case excluded:
			d.excluded++
			d.other = r.Set
			continue
		}
		if r.image {
			d.pictured++
		}
		if d.Name == FormatMooncake && d.unit == des.Millisecond && r.At%des.Millisecond != 0 {
			d.fractions++
		}
		if r.Content == nil {
			if d.bare++; d.bare == 1 {
				d.firstBare = d.Line()
			}
		}
		return r, nil
	}
}

// decode reads the request of a record, or a list of requests. The first of a list may have the
// record's time. A further one without a time follows the request before after a pause.
func (d *reader) decode(rec rows.Record) (all []row, err error) {
	if fields, want, ok := strings.Cut(d.only, "="); ok {
		if _, is := rows.Find(rec, fields); is != want {
			return nil, nil
		}
	}
	list, parts, whole := "", []jsontext.Value(nil), d.needs == d.list // a record is a list
	if d.list != "" {
		list, _ = rows.Find(rec, d.list)
		parts = rec.List(list)
	}
	switch {
	case whole && parts != nil && d.without != "":
	case whole && len(parts) == 0:
		return nil, rows.Wrong(list, rec.Text(list), "missing or empty; want a list, "+
			strings.ReplaceAll(d.list, "|", " or "))
	case len(parts) == 0:
		d.one[0], err = d.request(rec, rec, false)
		return d.one[:], err
	case !whole && !d.Has(list):
		return nil, rows.Wrong(list, "", "a session in a file that begins with a single request: put "+
			"sessions first")
	}
	after := des.Time(0)
	for i, raw := range parts {
		each, err := rows.NewObject(raw)
		var r row
		if err == nil {
			if d.records == 1 {
				d.parts = append(d.parts, each.Names()...)
			}
			r, err = d.request(each, rec, len(all) > 0)
		}
		if err != nil {
			return nil, rows.Under(fmt.Sprintf("%s[%d]", list, i), err)
		}
		if r.skip == part {
			continue
		}
		if r.later {
			r.pause += after
		}
		if after, _, err = sum(each, d.after); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// request reads a request of a record, or of a list in it, further if others are before it.
func (d *reader) request(rec, of rows.Record, further bool) (r row, err error) {
	if d.session != "" {
		_, r.Session = rows.Find(of, d.session)
		r.Session = strings.Clone(readName(r.Session))
	}
	if r.Session == "" && rec != of {
		r.Session = fmt.Sprintf("c%d", d.records)
	}
	paused := false
	if r.pause, paused, err = sum(rec, d.pause); err != nil {
		return r, err
	}
	key, text := d.time, ""
	if d.hasTime {
		if key, text = rows.Find(rec, d.time); text == "" && !further {
			key, text = rows.Find(of, d.time)
		}
	}
	r.later = r.Session != "" && paused && rec == of || further && text == ""
	if r.stamp = text; d.hasTime && (text != "" || !r.later) {
		if r.At, err = rows.Time(key, text, d.unit); err != nil {
			return r, err
		}
	}
	if r.took, _, err = sum(rec, d.took); err != nil {
		return r, err
	}
	if r.Prompt, err = d.tokens(rec, d.prompt); err != nil {
		return r, err
	}
	if r.Output, err = d.tokens(rec, d.output); err != nil {
		return r, err
	}
	if d.zeroFails && (r.Prompt == 0 || r.Output == 0) {
		r.skip = failed
		return r, nil
	}
	if d.set != "" {
		r.Set = unique.Make(readName(rec.Text(d.set))).Value() // do not retain a copy per row
	}
	if fields, want, is := strings.Cut(d.images, "="); fields != "" {
		_, text := rows.Find(rec, fields)
		r.image = is && text == want || !is && text != "" && text != "0" && text != "[]"
	}
	if d.more != nil {
		err = d.more(rec, &r)
	}
	return r, err
}

// tokens reads a number of tokens; 0 for a field that the format has not.
func (d *reader) tokens(rec rows.Record, fields string) (int, error) {
	if fields == "" {
		return 0, nil
	}
	key, text := rows.Find(rec, fields)
	least := 1
	if d.zeroFails {
		if least = 0; text == "" {
			return 0, nil
		}
	}
	return rows.Tokens(key, text, least)
}

// sum reads times whose fields are separated by +, in ms or as their names say, and whether there
// are any.
func sum(rec rows.Record, fields string) (total des.Time, any bool, err error) {
	if fields == "" {
		return 0, false, nil
	}
	for name := range strings.SplitSeq(fields, "+") {
		key, text := rows.Find(rec, name)
		if text == "" {
			continue
		}
		unit := des.Millisecond
		if strings.HasSuffix(key, "_ns") {
			unit = 1
		}
		t, err := rows.Time(key, text, unit)
		if err != nil {
			return 0, false, err
		}
		total, any = min(total+t, rows.Latest), true
	}
	return total, any, nil
}

// rest skips the remaining rows and returns their number, up to the first unreadable one. It counts
// nothing else.
func (d *reader) rest() (left int, err error) {
	before := d.counts
	for err == nil {
		_, err = d.row()
	}
	if err == io.EOF {
		err = nil
	}
	left, d.counts = d.n-before.n, before
	return left, err
}

func (d *reader) warnings() (w []warn.Warning) {
	file := d.File.Name
	if d.excluded > 0 && !d.member {
		w = append(w, unnamed(d.excluded, file))
	}
	if d.failed > 0 {
		w = append(w, warn.New(warn.RowsLeft, "%s left out that no service answered (0 prompt or output "+
			"tokens): %s", rows.Plural(d.failed, "row"), file).About("failed"))
	}
	if d.Open() {
		w = append(w, warn.New(warn.TraceContent, "the last line has no line end: %s:%d; if the file "+
			"was cut short, its last number may be, too", file, d.Line()).About("last line"))
	}
	w = append(w, d.unread()...)
	if d.Format.texts {
		w = append(w, estimated(file, d.tokenizer))
	}
	if d.others > 0 {
		w = append(w, warn.New(warn.RowsLeft, "%s left out without a request, such as %s: %s, the first "+
			"at line %d", rows.Plural(d.others, "value"), d.without, file, d.firstOther).About("others"))
	}
	if d.bare > 0 && d.bare < d.served() && d.Name != FormatCSV {
		w = append(w, warn.New(warn.TraceContent,
			"%s without hash_ids, though others have them, share nothing: the "+
				"first in %s:%d", rows.Plural(d.bare, "row"), file, d.firstBare).About("hash_ids"))
	}
	if d.fractions > 0 {
		w = append(w, warn.New(warn.TraceContent, "times with fractions of ms, Mooncake's unit, "+
			"in %d of %s: %s; if they are in s, set workload.speed = 0.001", d.fractions,
			rows.Plural(d.served(), "request"), file).About("ms"))
	}
	if d.pictured > 0 {
		name, _, _ := strings.Cut(strings.ReplaceAll(d.images, "|", ", "), "=")
		what := "images"
		if strings.Contains(name, "audio") {
			what = "images, audio or video"
		}
		w = append(w, warn.New(warn.TraceContent, "%d of %s have %s (%s): their encoder's "+
			"time and tokens are left out: %s", d.pictured, rows.Plural(d.served(), "request"), what, name,
			file).About("images"))
	}
	return w
}

// lineName quotes a name as in JSON if it has a line end or begins with a quote, so that it fits
// one line. readName is its inverse.
func lineName(s string) string {
	if strings.ContainsAny(s, "\r\n") || strings.HasPrefix(s, `"`) {
		return strconv.Quote(s)
	}
	return s
}

func readName(cell string) string {
	s := files.PlainCell(strings.TrimSpace(cell))
	if strings.HasPrefix(s, `"`) {
		if name, err := strconv.Unquote(s); err == nil {
			return name
		}
	}
	return s
}
