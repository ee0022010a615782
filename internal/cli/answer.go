package cli

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// answer is what a command finds: its data as JSON, its document and its files.
type answer struct {
	data  any
	doc   func(name string) *doc.Doc
	files func() ([]run.File, error)
}

// answer finds an answer and writes it with its figures into its folder. It prints the answer as
// JSON, or as text with the names of its files. unit is what the progress counts.
func (r *resultFlags) answer(ctx context.Context, app *App, folder *run.Folder, unit string,
	find func(*progress) (*answer, []string, error)) error {
	bar := newProgress(app.Stderr, unit)
	a, notes, err := find(bar)
	bar.close()
	printNotes(app.Stderr, notes)
	if err != nil {
		return goesOn(ctx, err)
	}
	files, err := a.files()
	if err != nil {
		return err
	}
	written, err := folder.Write(files...)
	if err != nil {
		return err
	}
	out := folder.Dir()
	d := a.doc(filepath.Base(out))
	drawn, err := figures.Draw(ctx, out, d.Figures)
	if err != nil {
		return run.KeptWhenFull(err)
	}
	if r.JSON {
		return printJSON(app, a.data)
	}
	if err := printAnswer(app.Stdout, d, "sparseserve report "+inCell(out)); err != nil {
		return err
	}
	printFiles(app.Stdout, out, append(written, drawn...), folder.Store.Dir())
	return nil
}

// printFiles lists the written files and the folder of the runs.
func printFiles(w io.Writer, out string, files []string, points string) {
	listFiles(w, out, files)
	fmt.Fprintln(w, "  "+inCell(within(out, points))+string(filepath.Separator)+
		"   every run's configuration, summary and requests")
}

// listFiles lists files by their names in the result folder.
func listFiles(w io.Writer, out string, files []string) {
	fmt.Fprintf(w, "\nFiles in %s:\n", inCell(out))
	for _, f := range files {
		fmt.Fprintln(w, "  "+inCell(within(out, f)))
	}
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

// numbered opens the folder of a name or, with more, the first of name, name-2, name-3, .. that
// does not fail for one of the reasons.
func numbered(name string, more bool, open func(out string) error, reasons ...error) error {
	for n, out := 2, name; ; n++ {
		err := open(out)
		if !more || !slices.ContainsFunc(reasons,
			func(reason error) bool { return errors.Is(err, reason) }) {
			return err
		}
		out = fmt.Sprintf("%s-%d", name, n)
	}
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
