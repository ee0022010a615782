package traces

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim/des"
)

// A csvFormat says which columns of a CSV file mean what. Names are compared without regard to
// case; further columns are not read, and said to be unless they are in idle.
type csvFormat struct {
	time, prompt, output, set string   // columns; empty when the format has none
	session, content          string   // more, which a file may lack
	alsoTime                  string   // another name of time
	images                    string   // column that counts a request's images
	idle                      []string // columns that change no load
	unit                      des.Time // of the time column; 0 is a calendar time
	timeOptional              bool     // lengths without times are of use
	zeroFails                 bool     // has rows of 0 tokens: requests that were never served
}

// missing returns the first column that a header lacks, or "".
func (f *csvFormat) missing(header []string) string {
	need := []string{f.time, f.prompt, f.output}
	if f.timeOptional {
		need = need[1:]
	}
	for _, name := range need {
		if columnOf(header, name) < 0 {
			return name
		}
	}
	return ""
}

// columnOf returns the place of a column in the header, or -1.
func columnOf(header []string, name string) int {
	return slices.IndexFunc(header, func(h string) bool {
		return name != "" && strings.EqualFold(strings.TrimSpace(h), name)
	})
}

// csvDecoder reads the rows below a header.
type csvDecoder struct {
	csvFormat
	fields                            []string // of the last row; used again
	width                             int      // fields of the header
	timeAt, promptAt, outputAt, setAt int      // columns; -1 when the file lacks it
	sessionAt, contentAt, imagesAt    int
	pictured                          int      // rows with images
	dropped                           []string // columns
	names                             map[string]string
}

// newCSV returns the decoder for a file with the given header.
func newCSV(f csvFormat, header []string) (*csvDecoder, error) {
	if columnOf(header, f.time) < 0 && columnOf(header, f.alsoTime) >= 0 {
		f.time = f.alsoTime
	}
	if name := f.missing(header); name != "" {
		return nil, &valueError{"header", strings.Join(header, ","), "has no column " + name}
	}
	for i, h := range header {
		if h = strings.TrimSpace(h); h != "" && columnOf(header[:i], h) >= 0 {
			return nil, &valueError{"header", strings.Join(header, ","), "has column " + h + " twice"}
		}
	}
	d := &csvDecoder{
		csvFormat: f, width: len(header), names: map[string]string{},
		timeAt: columnOf(header, f.time), promptAt: columnOf(header, f.prompt),
		outputAt: columnOf(header, f.output), setAt: columnOf(header, f.set),
		sessionAt: columnOf(header, f.session), contentAt: columnOf(header, f.content),
		imagesAt: columnOf(header, f.images),
	}
	read := append([]string{f.time, f.prompt, f.output, f.set, f.session, f.content, f.images},
		f.idle...)
	for _, h := range header {
		if h = strings.TrimSpace(h); h != "" && columnOf(read, h) < 0 {
			d.dropped = append(d.dropped, h)
		}
	}
	return d, nil
}

// columns lists the columns of the format that the file lacks.
func (d *csvDecoder) columns() (missing []string) {
	for name, at := range map[string]int{d.time: d.timeAt, d.set: d.setAt, d.session: d.sessionAt,
		d.content: d.contentAt} {
		if name != "" && at < 0 {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

func (d *csvDecoder) timeKey() string {
	if d.timeAt < 0 {
		return ""
	}
	return d.time
}

func (d *csvDecoder) decode(line []byte) (r row, err error) {
	if d.fields, err = splitCSV(d.fields[:0], line); err != nil {
		return row{}, err
	}
	if len(d.fields) != d.width {
		return row{}, &valueError{"line", string(line), "has " + plural(len(d.fields), "field") +
			", the header has " + plural(d.width, "column")}
	}
	if d.timeAt >= 0 {
		r.stamp = d.fields[d.timeAt]
		if d.unit == 0 {
			r.at, err = parseStamp(d.time, r.stamp)
		} else {
			r.at, err = parseTime(d.time, r.stamp, d.unit)
		}
		if err != nil {
			return row{}, err
		}
	}
	least := 1
	if d.zeroFails {
		least = 0
	}
	if r.output, err = parseTokens(d.output, d.fields[d.outputAt], least); err != nil {
		return row{}, err
	}
	if r.prompt, err = parseTokens(d.prompt, d.fields[d.promptAt], least); err != nil {
		return row{}, err
	}
	if r.output == 0 || r.prompt == 0 {
		r.skip = failed
	}
	if d.setAt >= 0 {
		r.set = d.name(readName(d.fields[d.setAt]))
	}
	if d.sessionAt >= 0 {
		r.session = strings.Clone(readName(d.fields[d.sessionAt]))
	}
	if d.imagesAt >= 0 {
		if n := strings.TrimSpace(d.fields[d.imagesAt]); n != "" && n != "0" {
			d.pictured++
		}
	}
	if d.contentAt >= 0 {
		r.content, err = parseContent(d.content, d.fields[d.contentAt], r.prompt)
	}
	return r, err
}

// check returns what is wrong with a line that nobody reads. It leaves the decoder as it is. Lines
// whose cells look like numbers or times are not decoded, because files have millions of them.
func (d *csvDecoder) check(line []byte) error {
	width, plain := 0, bytes.IndexByte(line, '"') < 0
	for rest, more := line, plain; more; width++ {
		var cell []byte
		cell, rest, more = bytes.Cut(rest, []byte(","))
		if width == d.promptAt || width == d.outputAt || width == d.timeAt {
			plain = plain && len(cell) > 0 && cell[0] >= '1' && cell[0] <= '9' && !odd(cell)
		}
	}
	if plain && width == d.width {
		return nil
	}
	c := *d
	_, err := c.decode(line)
	d.fields = c.fields
	return err
}

// odd says whether a cell has what neither whole numbers nor times are written with.
func odd(cell []byte) bool {
	for _, b := range cell {
		if (b < '0' || b > '9') && b != '.' && b != ':' && b != '-' && b != ' ' {
			return true
		}
	}
	return false
}

// name keeps one copy of each of the first names of sets, so that requests do not keep their
// whole line in memory. A file with a new name on every line must not fill the table.
func (d *csvDecoder) name(s string) string {
	if kept, ok := d.names[s]; ok {
		return kept
	}
	s = strings.Clone(s)
	if len(d.names) < 1024 {
		d.names[s] = s
	}
	return s
}

// lineName is a name as a cell of one line has it: quoted as in JSON where it has a line end, or
// begins with a quote. readName is its inverse.
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

// splitCSV appends the fields of one line. A quoted field cannot span lines: no trace needs it,
// and a stray quote must not swallow the rest of a file.
func splitCSV(fields []string, line []byte) ([]string, error) {
	if bytes.IndexByte(line, '"') < 0 {
		rest, more := string(line), true
		for more {
			var field string
			field, rest, more = strings.Cut(rest, ",")
			fields = append(fields, field)
		}
		return fields, nil
	}
	quoted, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return fields, &valueError{"line", string(line), "not valid CSV: a quote is left open or " +
			"stands inside a field"}
	}
	return append(fields, quoted...), nil
}
