package traces

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A csvFormat names the columns of a CSV format, case-insensitive. Other columns are ignored, with
// a warning unless they are in idle.
type csvFormat struct {
	time, prompt, output, set string   // columns; empty if the format has none
	session, content          string   // optional columns
	alsoTime                  string   // another name of time
	images                    string   // column that counts a request's images
	idle                      []string // columns that do not affect the load
	unit                      des.Time // of the time column; 0 is a calendar time
	timeOptional              bool     // lengths without times are valid
	zeroFails                 bool     // rows of 0 tokens are requests that were never served
}

// columns are the indices of a format's columns in a file; -1 for a missing column.
type columns struct{ time, prompt, output, set, session, content, images int }

// csvLines reads the rows below a header.
type csvLines struct {
	csvFormat
	*rows.Table
	at       columns
	pictured int // rows with images
}

// newCSV returns the rows of a table with the columns of a format.
func newCSV(f csvFormat, t *rows.Table) *csvLines {
	if t.Column(f.time) < 0 && t.Column(f.alsoTime) >= 0 {
		f.time = f.alsoTime
	}
	return &csvLines{csvFormat: f, Table: t, at: columns{t.Column(f.time),
		t.Column(f.prompt), t.Column(f.output), t.Column(f.set), t.Column(f.session),
		t.Column(f.content), t.Column(f.images)}}
}

func (d *csvLines) sessionKey() string { return d.session }
func (d *csvLines) texts() bool        { return false }

func (d *csvLines) timeKey() string {
	if d.at.time < 0 {
		return ""
	}
	return d.time
}

func (d *csvLines) next() (row, error) {
	cells, err := d.Next()
	if err != nil {
		return row{}, err
	}
	r, err := d.decode(cells)
	if err != nil {
		return row{}, d.Fault(err)
	}
	return r, nil
}

func (d *csvLines) decode(cells []string) (r row, err error) {
	if err := d.Whole(cells); err != nil {
		return row{}, err
	}
	if d.at.time >= 0 {
		r.stamp = cells[d.at.time]
		if d.unit == 0 {
			r.at, err = rows.Stamp(d.time, r.stamp)
		} else {
			r.at, err = rows.Time(d.time, r.stamp, d.unit)
		}
		if err != nil {
			return row{}, err
		}
	}
	least := 1
	if d.zeroFails {
		least = 0
	}
	if r.output, err = rows.Tokens(d.output, cells[d.at.output], least); err != nil {
		return row{}, err
	}
	if r.prompt, err = rows.Tokens(d.prompt, cells[d.at.prompt], least); err != nil {
		return row{}, err
	}
	if r.output == 0 || r.prompt == 0 {
		r.skip = failed
	}
	if d.at.set >= 0 {
		r.set = unique.Make(readName(cells[d.at.set])).Value() // do not retain a copy per row
	}
	if d.at.session >= 0 {
		r.session = strings.Clone(readName(cells[d.at.session]))
	}
	if d.at.images >= 0 {
		if n := strings.TrimSpace(cells[d.at.images]); n != "" && n != "0" {
			d.pictured++
		}
	}
	if d.at.content >= 0 {
		r.content, err = ParseContent(d.content, cells[d.at.content], r.prompt)
	}
	return r, err
}

// rest continues after invalid rows and returns the first error.
func (d *csvLines) rest() (n int, damage error) {
	unseen := *d
	for ; ; n++ {
		cells, err := d.Next()
		switch {
		case err == nil:
			_, err = unseen.decode(cells)
			if err != nil && damage == nil {
				damage = d.Fault(err)
			}
		case damage != nil || err == io.EOF:
			return n, damage
		default:
			return n, err
		}
	}
}

func (d *csvLines) warnings(kept int) (w []warn.Warning) {
	file := d.Source().Name
	if d.Open() {
		w = append(w, warn.New(warn.TraceContent,
			"the last line has no line end: %s:%d; if the file was cut "+
				"short, its last number may be, too", file, d.Line()).About("last line"))
	}
	w = append(w, d.unread()...)
	return append(w, pictured(d.pictured, kept, d.images, file)...)
}

// unread warns of ignored columns, and suggests the missing columns that they may be meant as.
func (d *csvLines) unread() []warn.Warning {
	var missing, dropped []string
	of := []string{d.content, d.session, d.set, d.time}
	for _, name := range of {
		if name != "" && d.Column(name) < 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	read := append(append(of, d.prompt, d.output, d.images), d.idle...)
	for _, h := range d.Header {
		if h != "" && !slices.ContainsFunc(read, func(n string) bool { return strings.EqualFold(n, h) }) {
			dropped = append(dropped, h)
		}
	}
	return unread("column", dropped, missing, d.Source().Name)
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
