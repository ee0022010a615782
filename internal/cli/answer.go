package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// answer is the result of a command that builds one document.
type answer struct {
	result any // as JSON
	doc    *doc.Doc
	files  []run.File
	json   bool
}

// finishAnswer writes an answer and its figures into its folder. It prints the answer as JSON, or
// as text with the names of its files.
func finishAnswer(ctx context.Context, app *App, folder *run.Folder, a answer) error {
	written, err := folder.Write(a.files...)
	if err != nil {
		return err
	}
	out := folder.Dir()
	drawn, err := figures.Draw(ctx, out, a.doc.Figures)
	if err != nil {
		return run.KeptWhenFull(err)
	}
	if a.json {
		return printJSON(app, a.result)
	}
	if err := printAnswer(app.Stdout, a.doc, "sparseserve report "+inCell(out)); err != nil {
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
