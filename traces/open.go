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

// options are the parts of a Spec that readers need.
type options struct {
	format    string // "": detect
	tokenizer Tokenizer
	datasets  []string // LongBench sets to keep; nil: all
	output    string
	ordered   bool       // times are used, so they must not decrease
	lengths   *rand.Rand // draws output lengths of chat models
	order     *rand.Rand // mixes the files of a folder
	once      bool       // the file is read once, so a pipe need not be kept

	// sessions
	seed         uint64
	scale, think float64 // multiplier of outputs; mean think time, seconds
}

// wholeFile returns the options for describing and converting a file.
func wholeFile(format string) options {
	return options{
		format: format, tokenizer: Llama2, output: OutputBase, ordered: true,
		lengths: des.Rand(0, "traces.lengths"), order: des.Rand(0, "traces.order"), scale: 1,
	}
}

// openOnce opens a trace for one complete read.
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

// openTrace opens a trace file or folder and returns its format.
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

// noFile returns the error for a path that does not exist.
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

// newSource detects the format of a file from its first record: the header of a CSV, or a JSON
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
	lines := &jsonLines{Values: values, decoder: format.json(&o, first)}
	if format.sessions(keys) {
		return newSessions(&grouped{jsonLines: lines, seed: o.seed}, o.scale, o.think), format.Name, nil
	}
	return &reader{lines: lines, ordered: o.ordered}, format.Name, nil
}

// formatOf returns the format of the given name. Without a name it returns the first format, JSON
// or CSV as the file, whose keys the first record has.
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
