package traces

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// A decoder reads the values of one JSON format.
type decoder interface {
	decode(raw []byte) ([]row, error) // none of a value that is no request
	timeKey() string                  // the key of the time; empty when the format has none
	keys() []string                   // of a value; other keys are reported as unread
	// tokenizer counts prompts if the format has no token counts.
	tokens() Tokenizer
}

// jsonLines reads JSON values.
type jsonLines struct {
	decoder
	*rows.Values
	dropped droppedKeys

	more               []row // of the value last read
	n, bare, firstBare int   // rows; rows without content; the first such line
	pictured           int   // rows with an image
	others             int   // values that are no requests
}

func (d *jsonLines) sessionKey() string { return "" }
func (d *jsonLines) texts() bool        { return d.tokens() != "" }

func (d *jsonLines) next() (row, error) {
	for len(d.more) == 0 {
		raw, err := d.Next()
		if err != nil {
			return row{}, err
		}
		if d.more, err = d.decode(raw); err != nil {
			return row{}, d.Fault(err)
		}
		d.dropped.of(raw, d.keys())
		if len(d.more) == 0 {
			d.others++
		}
	}
	r := d.more[0]
	d.more = d.more[1:]
	d.n++
	if r.image {
		d.pictured++
	}
	if r.content == nil {
		if d.bare++; d.bare == 1 {
			d.firstBare = d.Line()
		}
	}
	return r, nil
}

func (d *jsonLines) rest() (n int, err error) {
	for ; err == nil; n++ {
		var raw json.RawMessage
		if raw, err = d.Next(); err == nil && !bytes.HasPrefix(raw, []byte("{")) {
			err = d.Fault(rows.Decode(raw, new(struct{})))
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n - 1, err
}

func (d *jsonLines) warnings(kept int) []warn.Warning {
	w := d.dropped.warning(d.Source().Name)
	if t := d.tokens(); t != "" {
		w = append(w, estimated(d.Source().Name, t))
	}
	if d.others > 0 {
		w = append(w, warn.New(warn.RowsLeft, "%s of others than requests, such as calls of tools, left "+
			"out: %s", rows.Plural(d.others, "value"), d.Source().Name).About("others"))
	}
	if d.bare > 0 && d.bare < d.n {
		w = append(w, warn.New(warn.TraceContent,
			"%s without hash_ids, though others have them, share nothing: the "+
				"first in %s:%d", rows.Plural(d.bare, "row"), d.Source().Name, d.firstBare).About("hash_ids"))
	}
	return append(w, pictured(d.pictured, kept, "type", d.Source().Name)...)
}

// droppedKeys are the unread keys of a file's first record.
type droppedKeys struct {
	seen  bool
	names []string
}

// of records the keys of the first record that are not known.
func (d *droppedKeys) of(record []byte, known []string) {
	if !d.seen {
		d.seen = true
		d.add(record, known)
	}
}

func (d *droppedKeys) add(object []byte, known []string) {
	for _, key := range rows.Keys(object) {
		if !slices.Contains(known, key) && !slices.Contains(d.names, key) {
			d.names = append(d.names, key)
		}
	}
}

// warning returns a warning with the keys.
func (d *droppedKeys) warning(file string) []warn.Warning {
	slices.Sort(d.names)
	return unread("key", d.names, nil, file)
}
