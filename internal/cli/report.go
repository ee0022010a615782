package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
)

type reportCmd struct {
	Folder string `arg:"" name:"DIR" help:"Result folder of a command, or of a calibration's plots. To show runs of several models, cards or systems together, make them with one simulate: lists of keys, or [[axis]] tables."`
	Format string `enum:"html,text,json,csv,md,png,svg,pdf" default:"html" placeholder:"FORMAT" help:"What to make: html is one file; text, json, csv and md are printed; png, svg and pdf draw the pictures. Default: ${default}."`
	Out    string `placeholder:"PATH" help:"File to write, or the folder of pictures. Default: report.html in the result folder for html, standard output for text, json, csv and md, the result folder for pictures."`
}

func (r *reportCmd) Run(ctx context.Context, app *App) error {
	if slices.Contains([]string{"png", "svg", "pdf"}, r.Format) {
		return r.draw(ctx, app)
	}
	d, err := answers.Read(r.Folder)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := render(&text, d, r.Format); err != nil {
		return err
	}
	out := r.Out
	if out == "" && r.Format == "html" {
		out = filepath.Join(r.Folder, "report.html")
	}
	if out == "" {
		_, err := unescaped(app.Stdout).Write(text.Bytes())
		return err
	}
	if err := r.write(out, text.Bytes()); err != nil {
		return err
	}
	fmt.Fprintln(app.Stdout, inCell(out))
	return nil
}

// render writes a whole document in a format.
func render(w io.Writer, d *doc.Doc, format string) error {
	switch format {
	case "html":
		return show.HTML(w, d)
	case "md":
		return show.Markdown(w, d)
	case "csv":
		return show.CSV(w, d)
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	return show.Text(w, d, show.Options{Whole: true})
}

// write writes the report. In the result folder it replaces only an earlier report.
func (r *reportCmd) write(path string, text []byte) error {
	ending := "." + map[string]string{"text": "txt"}[r.Format]
	if ending == "." {
		ending += r.Format
	}
	if filepath.Ext(path) != ending {
		return fmt.Errorf("--out %s: want a name that ends in %s", path, ending)
	}
	folder, err := filepath.EvalSymlinks(r.Folder)
	if err != nil {
		return err
	}
	var kept []string
	err = filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (filepath.Ext(file) != ".html" || ending != ".html") {
			kept = append(kept, file)
		}
		return err
	})
	if err != nil {
		return err
	}
	return files.Write(path, text, kept...)
}

// draw draws the pictures of folders.
func (r *reportCmd) draw(ctx context.Context, app *App) error {
	d, err := answers.Read(r.Folder)
	if err != nil {
		return err
	}
	if len(d.Figures) == 0 {
		return fmt.Errorf("%s: there is nothing to draw", r.Folder)
	}
	drawn, err := drawIn(ctx, cmp.Or(r.Out, r.Folder), d.Figures, r.Format)
	printPaths(app, drawn)
	return err
}

func printPaths(app *App, files []string) {
	for _, path := range files {
		fmt.Fprintln(app.Stdout, inCell(path))
	}
}
