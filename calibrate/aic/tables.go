// Package aic makes kernels and cards of this project from tables of measured kernels in the format
// of AIConfigurator (github.com/ai-dynamo/aiconfigurator, Apache-2.0). Each card has a folder with
// Parquet files, one per operation and engine version. Latencies are in ms.
package aic

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/sparseserve/sparseserve/internal/files"
)

// common are the columns of every table.
type common struct {
	Framework string  `parquet:"framework"`
	Version   string  `parquet:"version"`
	Device    string  `parquet:"device"`
	Kernel    string  `parquet:"kernel_source"`
	Latency   float64 `parquet:"latency"` // ms
}

// mostBytes and mostRows bound a file; the largest table has 2 MB and 10^5 rows.
const (
	mostBytes = 256 << 20
	mostRows  = 10_000_000
)

// errDamaged replaces the Parquet library's error for a damaged file.
var errDamaged = errors.New("damaged, or not a Parquet file; download it again")

// tables are the files of one card's folder.
type tables struct {
	dir   string
	other map[string]int // number of rows of versions other than the table's first
	paths []string
}

// open lists the tables of a folder.
func open(dir string) (*tables, error) {
	t := &tables{dir: dir, other: map[string]int{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".parquet") {
			t.paths = append(t.paths, path)
		}
		return err
	})
	if err == nil && len(t.paths) == 0 {
		err = errors.New("no .parquet file in it: want a card's folder of AIConfigurator's systems/data")
	}
	if err != nil {
		return nil, fmt.Errorf("tables: %s: %w", dir, err)
	}
	slices.Sort(t.paths)
	return t, nil
}

// file returns the file of an operation, and of an engine if several have the operation; "" if the
// folder has none. Several versions are an error, because the user must select one.
func (t *tables) file(operation, engine string) (string, error) {
	var found []string
	for _, f := range t.paths {
		if filepath.Base(f) == operation+".parquet" && strings.Contains(
			strings.ToLower(filepath.ToSlash(strings.TrimPrefix(f, t.dir))), "/"+engine) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("tables: %d files of %s: give a folder with one of them:\n  %s", len(found),
		operation, strings.Join(found, "\n  "))
}

// row is one row of a table.
type row[T any] struct {
	line int // from 1
	common
	of T
}

// read returns the rows of an operation, or nil without its table. T has the columns besides the
// common ones.
func read[T any](t *tables, operation string) ([]row[T], error) {
	return readOf[T](t, operation, "vllm")
}

// readOf is read for one engine's table.
func readOf[T any](t *tables, operation, engine string) ([]row[T], error) {
	path, err := t.file(operation, engine)
	if err != nil || path == "" {
		return nil, err
	}
	rows, err := readFile[T](path, t.other)
	if err != nil {
		return nil, fmt.Errorf("tables: %s: %w", path, err)
	}
	return rows, nil
}

func readFile[T any](path string, other map[string]int) (all []row[T], err error) {
	defer func() { // the library panics on offsets beyond a damaged file
		if recover() != nil {
			all, err = nil, errDamaged
		}
	}()
	in, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > mostBytes:
		return nil, fmt.Errorf("want a regular file of at most %d MiB", mostBytes>>20)
	}
	file, err := parquet.OpenFile(in, info.Size())
	if err != nil || file.NumRows() > mostRows {
		return nil, errDamaged
	}
	var of T
	var c common
	err = cmp.Or(hasColumns(file, reflect.TypeOf(c)), hasColumns(file, reflect.TypeOf(of)))
	if err != nil {
		return nil, err
	}
	commons, err := parquet.Read[common](in, info.Size())
	others, err2 := parquet.Read[T](in, info.Size())
	if err != nil || err2 != nil || len(commons) != len(others) {
		return nil, errDamaged
	}
	rows := make([]row[T], 0, len(commons))
	for i := range commons {
		r := row[T]{i + 1, commons[i], others[i]}
		switch {
		case !(r.Latency > 0) || math.IsInf(r.Latency, 0):
			return nil, fmt.Errorf("row %d: latency %v: want milliseconds above 0", r.line, r.Latency)
		case r.Framework == "" || r.Version == "" || r.Kernel == "":
			return nil, fmt.Errorf("row %d: want a framework, a version and a kernel_source", r.line)
		case r.Device != commons[0].Device:
			return nil, fmt.Errorf("row %d was measured on %s, row 1 on %s: want one device", r.line,
				r.Device, commons[0].Device)
		case r.Version != commons[0].Version:
			other[r.Framework+" "+r.Version]++
			continue
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, errors.New("no rows")
	}
	return rows, nil
}

// hasColumns checks that the file has the columns and types of a struct.
func hasColumns(file *parquet.File, of reflect.Type) error {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		column, ok := file.Schema().Lookup(name)
		if !ok {
			return fmt.Errorf("no column %q: the table has another schema (its columns: %s)", name,
				strings.Join(columnNames(file), ", "))
		}
		want := map[reflect.Kind]parquet.Kind{reflect.String: parquet.ByteArray,
			reflect.Int64: parquet.Int64, reflect.Float64: parquet.Double}[f.Type.Kind()]
		if got := column.Node.Type().Kind(); got != want {
			return fmt.Errorf("column %q has type %v, want %v: the table has another schema", name,
				got, want)
		}
	}
	return nil
}

func columnNames(file *parquet.File) (names []string) {
	for _, c := range file.Schema().Columns() {
		names = append(names, c[0])
	}
	return names
}
