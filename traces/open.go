package traces

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"

	"github.com/sparseserve/sparseserve/sim/des"
)

// options are what the readers need to know of a Spec.
type options struct {
	format    string // "" recognises
	tokenizer Tokenizer
	datasets  []string // LongBench sets to keep; nil keeps all
	output    string
	ordered   bool       // times are used, so they must not run back
	lengths   *rand.Rand // draws output lengths of chat models
	order     *rand.Rand // mixes the files of a folder
	once      bool       // the file is not read again: a pipe needs not be kept

	// of sessions
	seed         uint64
	scale, think float64 // of outputs; mean, seconds
}

// wholeFile are the options under which a file is described and converted.
func wholeFile(format string) options {
	return options{
		format: format, tokenizer: Llama2, output: OutputBase, ordered: true,
		lengths: des.Rand(0, "traces.lengths"), order: des.Rand(0, "traces.order"), scale: 1,
	}
}

// openPath opens a trace file or a folder and returns the format it has.
func openPath(path string, o options) (source, string, error) {
	if path == files.Stdin {
		return openFile(path, o)
	}
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, "", noFile(path)
		}
		return nil, "", err
	}
	if info.IsDir() {
		if o.format != "" && o.format != FormatLongBench {
			return nil, "", fmt.Errorf("%s: a folder; only LongBench is read from a folder, give one file "+
				"for format %q", path, o.format)
		}
		f, err := openFolder(path, o)
		if err != nil {
			return nil, "", err
		}
		return f, FormatLongBench, nil
	}
	return openFile(path, o)
}

// noFile is the error of a path where nothing is.
func noFile(path string) error {
	generated := []string{BuiltIn, Synthetic, Sessions}
	near := nearest.Name(path, generated)
	switch {
	case slices.Contains(generated, path):
		return fmt.Errorf("%s: no such file or folder, but a generated workload; trace describe takes "+
			"a configuration, FILE.toml, with workload.trace = %q", path, path)
	case near != "":
		return fmt.Errorf("%s: no such file or folder (did you mean %q?)", path, near)
	}
	return fmt.Errorf("%s: no such file or folder", path)
}

// openFile opens one file, packed or not, as a source.
func openFile(path string, o options) (source, string, error) {
	text, shut, err := openText(path, o.once)
	if err != nil {
		return nil, "", err
	}
	src, format, err := newSource(files.Label(path), text, o)
	if err != nil {
		shut()
		return nil, "", err
	}
	switch s := src.(type) {
	case *reader:
		s.close = shut
	case *sessions:
		s.talker.(*shareGPT).close = shut
	}
	return src, format, nil
}

// newSource reads the beginning of a file to learn its format.
func newSource(file string, from io.Reader, o options) (source, string, error) {
	text := bufio.NewReaderSize(from, 64<<10)
	if o.format == "" || o.format == FormatShareGPT {
		start, _ := text.Peek(64) // an error comes again
		mark := bytes.TrimPrefix(start, []byte(byteOrderMark))
		if bytes.HasPrefix(bytes.TrimSpace(mark), []byte("[")) {
			text.Discard(len(start) - len(mark))
			return newSessions(newShareGPT(file, text, 0, &o), o.scale, o.think), FormatShareGPT, nil
		}
	}
	r, format, err := newReader(file, text, o)
	if err != nil {
		return nil, "", err
	}
	if r.dec == nil { // conversations, one after another
		first, l := bytes.Clone(r.lines.buf), r.lines
		rest := io.MultiReader(bytes.NewReader(first), strings.NewReader("\n"), l.r)
		talks := newShareGPT(file, rest, l.number-1, &o)
		return newSessions(talks, o.scale, o.think), format, nil
	}
	return r, format, nil
}

func openReader(path string, o options) (*reader, string, error) {
	text, shut, err := openText(path, o.once)
	if err != nil {
		return nil, "", err
	}
	r, format, err := newReader(files.Label(path), text, o)
	if err != nil {
		shut()
		return nil, "", err
	}
	r.close = shut
	return r, format, nil
}

// openText opens the text of a file, packed or not. once says that it is not opened again.
func openText(path string, once bool) (text io.Reader, shut func() error, err error) {
	open := files.Again
	if once {
		open = files.Input
	}
	f, err := open(path)
	if err != nil {
		return nil, nil, err
	}
	z, err := files.Unpack(f)
	if err != nil {
		f.Close()
		return nil, nil, &LineError{File: files.Label(path), Problem: err.Error()}
	}
	return z, func() error { return errors.Join(z.Close(), f.Close()) }, nil
}

// newReader reads the first line of a file to learn its format.
func newReader(file string, from io.Reader, o options) (*reader, string, error) {
	r := &reader{lines: newLines(file, from), ordered: o.ordered}
	first, err := r.lines.next()
	if err == io.EOF {
		return nil, "", &LineError{File: file, Problem: "empty file"}
	}
	if err != nil {
		return nil, "", err
	}
	format := o.format
	if format == "" {
		if format, err = recognise(first); err != nil {
			return nil, "", r.truncated(r.fault(err))
		}
	}
	f, err := formatNamed(format)
	if err != nil {
		return nil, "", r.fault(err)
	}
	if f.talks {
		return r, format, nil
	}
	if f.json != nil {
		r.lines.unread()
		r.dec = f.json(&o)
		return r, format, nil
	}
	header, err := splitCSV(nil, first)
	if err != nil {
		return nil, "", r.fault(err)
	}
	dec, err := newCSV(f.csv, header)
	if err != nil {
		return nil, "", r.fault(err)
	}
	r.dec = dec
	return r, format, nil
}

// recognise finds the format by a file's first line.
func recognise(first []byte) (string, error) {
	if text := strings.TrimSpace(string(first[:min(len(first), 64)])); strings.HasPrefix(text, "{") {
		return recogniseJSON(first)
	}
	header, err := splitCSV(nil, first)
	if err != nil {
		return "", err
	}
	var known []string
	for _, f := range Formats() {
		switch {
		case f.json != nil || f.talks:
			continue
		case f.csv.missing(header) == "":
			return f.Name, nil
		}
		known = append(known, fmt.Sprintf("%s,%s,%s (%s)", f.csv.time, f.csv.prompt,
			f.csv.output, f.Name))
	}
	return "", &valueError{"header", string(first[:min(len(first), 80)]), "no known format; a trace " +
		"is JSON lines, or CSV that begins with one of " + strings.Join(known, "; ")}
}

func recogniseJSON(first []byte) (string, error) {
	var keys map[string]json.RawMessage
	if err := decodeJSON(first, &keys); err != nil {
		return "", err
	}
	var known []string
	for _, f := range Formats() {
		lacks := func(key string) bool {
			a, b, two := strings.Cut(key, "|")
			return keys[a] == nil && !(two && keys[b] != nil)
		}
		switch {
		case f.json == nil && !f.talks:
			continue
		case !slices.ContainsFunc(f.keys, lacks):
			return f.Name, nil
		}
		known = append(known, strings.ReplaceAll(strings.Join(f.keys, " and "), "|", " or ")+" ("+
			f.Name+")")
	}
	return "", errors.New("JSON without the keys of a known format: " + strings.Join(known, ", "))
}
