package traces

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// folder mixes the LongBench files of a folder into one trace, as the paper does. Each request
// comes from a random file, with probability in proportion to its remaining requests. Every prefix
// of the trace therefore has the sets in proportion.
type folder struct {
	path      string
	tokenizer Tokenizer
	rng       *rand.Rand
	files     []*folderFile
	left      int  // records in files
	some      bool // a request was read
}

type folderFile struct {
	*reader
	left int // records
}

// countObjects returns the number of JSON objects of a file.
func countObjects(path string) (n int, err error) {
	f, err := rows.Open(path, true)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	from, err := rows.NewReader(f)
	for ; err == nil; n++ {
		_, err = from.Record()
	}
	if err == io.EOF {
		return n - 1, nil
	}
	return 0, err
}

// openFolder opens every *.jsonl file of a folder, compressed or not. LongBench-E's X_e.jsonl
// samples the same task as X.jsonl and is skipped if both exist.
func openFolder(path string, o options) (source, string, error) {
	if o.Format != "" && o.Format != FormatLongBench {
		return nil, "", fmt.Errorf("%s: a folder; only LongBench is read from a folder, give one file "+
			"for format %q", path, o.Format)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, "", err
	}
	var paths []string // sorted by name
	seen := map[string]bool{}
	for _, e := range entries {
		if set, ok := setOfFile(e.Name()); ok && !e.IsDir() && !seen[set] {
			seen[set] = true
			paths = append(paths, filepath.Join(path, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, "", fmt.Errorf("%s: a folder without .jsonl files; give a folder of LongBench "+
			"files, or one file", path)
	}
	o.Format = FormatLongBench
	f := &folder{path: path, tokenizer: o.tokenizer, rng: o.order}
	for _, p := range paths {
		set, _ := setOfFile(filepath.Base(p))
		if plain, e := strings.CutSuffix(set, "_e"); e && seen[plain] {
			continue
		}
		n, err := countObjects(p)
		if err != nil {
			f.Close()
			return nil, "", err
		}
		src, _, err := openTrace(p, o)
		if err != nil {
			f.Close()
			return nil, "", err
		}
		r := src.(*reader)
		r.member = true
		f.files, f.left = append(f.files, &folderFile{r, n}), f.left+n
	}
	return f, FormatLongBench, nil
}

func (f *folder) next() (sim.Arrival, error) {
	for f.left > 0 {
		file := f.draw()
		before := file.records
		a, err := file.next()
		read := file.records - before
		if err == io.EOF {
			read = file.left
		}
		file.left, f.left = file.left-read, f.left-read
		if err != io.EOF {
			f.some = true
			return a, err
		}
	}
	if !f.some {
		return sim.Arrival{}, &rows.Error{File: f.path,
			Problem: "no requests of longbench.datasets in it"}
	}
	return sim.Arrival{}, io.EOF
}

// draw returns a random file, in proportion to its remaining records.
func (f *folder) draw() *folderFile {
	k := f.rng.IntN(f.left)
	for _, file := range f.files {
		if k -= file.left; k < 0 {
			return file
		}
	}
	panic(fmt.Sprintf("traces: %s: lines of files do not sum to %d", f.path, f.left))
}

func (f *folder) timed() bool { return false }
func (f *folder) texts() bool { return true }

func (f *folder) warnings() []warn.Warning {
	var w []warn.Warning
	excluded := 0
	for _, file := range f.files {
		excluded += file.excluded
	}
	if excluded > 0 {
		w = append(w, unnamed(excluded, f.path))
	}
	return append(w, estimated(f.path, f.tokenizer))
}

func (f *folder) rest() (int, error) { return f.left, nil }

func (f *folder) Close() error {
	var errs []error
	for _, file := range f.files {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

// setOfFile returns the set of a file in a folder: X for X.jsonl, compressed or not.
func setOfFile(name string) (set string, ok bool) {
	return strings.CutSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"), ".jsonl")
}
