package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
)

// show draws the figures of an answer into its folder, until ctx ends, and prints the answer: data
// as JSON, or the document and the names of the files in the folder.
func (a *App) show(ctx context.Context, out string, d *doc.Doc, asJSON bool, data any,
	files []string) error {
	drawn, err := drawIn(ctx, out, d.Figures)
	if err != nil && !stopped(ctx, err) {
		return run.KeptWhenFull(err)
	}
	if asJSON {
		return printJSON(a, data)
	}
	options := show.Options{Columns: terminalColumns(a.Stdout), More: reportOf(out)}
	if err := show.Text(a.Stdout, d, options); err != nil {
		return err
	}
	a.listFiles(out, append(files, drawn...))
	return nil
}

// drawIn draws figures into a folder, with their numbers in one CSV.
func drawIn(ctx context.Context, dir string, all []doc.Figure, formats ...string) ([]string,
	error) {
	path := filepath.Join(dir, run.PicturesCSV)
	text, err := files.ReadResult(path)
	header, _, _ := strings.Cut(string(text), "\n")
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err == nil && !strings.Contains(header, "picture"):
		return nil, fmt.Errorf("%s: is not of pictures, whose numbers would replace it; choose another "+
			"folder", path)
	case err != nil:
		return nil, err
	}
	var numbers bytes.Buffer
	if err := show.CSV(&numbers, &doc.Doc{Figures: all}); err != nil || len(all) == 0 {
		return nil, err
	}
	file := run.File{Name: run.PicturesCSV, Text: numbers.Bytes()}
	if _, err := run.WriteFiles(dir, file); err != nil {
		return nil, err
	}
	drawn, err := figures.Draw(ctx, dir, all, formats...)
	return append(drawn, path), err
}

// reportOf returns the command that shows all of a folder.
func reportOf(out string) string { return "sparseserve report " + inCell(out) + " --format text" }

// listFiles lists files by their names in the result folder, in one line.
func (a *App) listFiles(out string, files []string) {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = inCell(within(out, f))
	}
	fmt.Fprintf(a.Stdout, "\nFiles in %s: %s\n", inCell(out), strings.Join(names, ", "))
}

// namePoints names the folder of the runs.
func (a *App) namePoints(folder *run.Folder) {
	fmt.Fprintf(a.Stdout, "Runs in %s: configuration, summary and requests of each\n",
		inCell(folder.Store.Dir()))
}

// within returns a path relative to a folder; the whole path if it is outside.
func within(folder, path string) string {
	if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// isFolder reports whether a path is a folder.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// numbered opens the folder or, with more, the first of it, FOLDER-2, FOLDER-3, .. that does not
// fail for one of the reasons.
func numbered(folder string, more bool, open func(out string) error, reasons ...error) error {
	for n, out := 2, folder; ; n++ {
		err := open(out)
		if !more || !slices.ContainsFunc(reasons,
			func(reason error) bool { return errors.Is(err, reason) }) {
			return err
		}
		out = fmt.Sprintf("%s-%d", folder, n)
	}
}

// open opens the result folder of a question: --out, or the first numbered folder below out/ that
// does not fail for one of the reasons.
func (r *resultFlags) open(name, version string, q *run.Question, points string,
	reasons ...error) (folder *run.Folder, err error) {
	err = numbered(cmp.Or(r.Out, filepath.Join("out", name)), r.Out == "", func(dir string) error {
		folder, err = run.OpenFolder(dir, version, q, points, r.Force)
		return err
	}, reasons...)
	return folder, err
}

// settingsName returns the part of a folder name that settings add: -rate=0.3 for
// workload.rate=0.3.
func settingsName(sets []string) string {
	const most = 120 // bytes; longer ones end in a digest
	var b strings.Builder
	for _, set := range sets {
		key, value, _ := strings.Cut(set, "=")
		if strings.HasPrefix(value, string(filepath.Separator)) { // a file is known by its name
			value = filepath.Base(value)
		}
		b.WriteString("-" + config.KeyName(key) + "=" + value)
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
			strings.ContainsRune("-_=+.,", r):
			return r
		case r == '[' || r == ']' || r == '"' || r == ' ':
			return -1
		}
		return '_'
	}, b.String())
	if len(name) > most {
		name = fmt.Sprintf("%s-%08x", name[:most-9], crc32.ChecksumIEEE([]byte(name)))
	}
	return name
}
