package traces

import (
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
	"github.com/sparseserve/sparseserve/traces/rows"
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

// openOnce opens a trace that is read once and as a whole.
func openOnce(path, format string, tokenizer Tokenizer) (source, string, error) {
	if format != "" {
		if err := oneOf("format", format, FormatNames()); err != nil {
			return nil, "", err
		}
	}
	o := wholeFile(format)
	o.once, o.tokenizer = true, tokenizer
	return openTrace(path, o)
}

// openTrace opens a trace, a file or a folder, and returns the format that it has.
func openTrace(path string, o options) (source, string, error) {
	if info, err := os.Stat(path); path == files.Stdin {
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, "", noFile(path)
	} else if err != nil {
		return nil, "", err
	} else if info.IsDir() {
		return openFolder(path, o)
	}
	f, err := rows.Open(path, !o.once)
	if err != nil {
		return nil, "", err
	}
	src, format, err := newSource(f, o)
	if err != nil {
		f.Close()
		return nil, "", err
	}
	return src, format, nil
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

// newSource reads the first record of a file to learn its format: the header of a CSV, or a JSON
// value.
func newSource(f *rows.File, o options) (source, string, error) {
	if first := f.First(); first == '{' || first == '[' {
		return newJSONSource(rows.NewValues(f), o)
	}
	table, err := rows.NewTable(f)
	if err != nil {
		return nil, "", err
	}
	format, err := formatOf(o.format, false, func(column string) bool {
		return table.Column(column) >= 0
	})
	if err != nil {
		return nil, "", table.Fault(rows.Wrong("header", strings.Join(table.Header, ","), err.Error()))
	}
	return &reader{lines: newCSV(format.csv, table), ordered: o.ordered}, format.Name, nil
}

func newJSONSource(values *rows.Values, o options) (source, string, error) {
	first, err := values.Peek()
	if err == io.EOF {
		err = &rows.Error{File: values.Source().Name, Problem: "no requests in it"}
	}
	if err != nil {
		return nil, "", err
	}
	keys := rows.Keys(first)
	format, err := formatOf(o.format, true, func(key string) bool {
		return slices.Contains(keys, key)
	})
	if err != nil {
		return nil, "", values.Fault(rows.Wrong("keys", strings.Join(keys, ", "), err.Error()))
	}
	if format.talks {
		return newSessions(newShareGPT(values, &o), o.scale, o.think), format.Name, nil
	}
	lines := &jsonLines{Values: values, decoder: format.json(&o)}
	return &reader{lines: lines, ordered: o.ordered}, format.Name, nil
}

// formatOf returns the format of a name, or without one the first that is JSON or not, as the file
// is, and whose keys the first record has.
func formatOf(name string, json bool, has func(key string) bool) (Format, error) {
	var known []string
	for _, f := range Formats() {
		if name == f.Name || name == "" && f.isJSON() == json && f.missing(has) == "" {
			return f, f.fits(json, has)
		}
		if f.isJSON() == json {
			needs := strings.ReplaceAll(strings.Join(f.needs(), ", "), "|", " or ")
			known = append(known, needs+" ("+f.Name+")")
		}
	}
	is := "JSON, or has "
	if json {
		is = "CSV, or has "
	}
	return Format{}, errors.New("no known format; a trace is " + is + strings.Join(known, "; or "))
}
