package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
)

type reportCmd struct {
	Folder string `arg:"" name:"FOLDER" help:"Result folder of simulate, sweep, plan, whatif, compare or validate, or the folder of a calibration's plots."`
	Format string `enum:"html,text,json,csv,md,png,svg,pdf" default:"html" placeholder:"FORMAT" help:"What to make: html is one file; text, json, csv and md are printed; png, svg and pdf draw the pictures. Default: ${default}."`
	Out    string `placeholder:"PATH" help:"File to write, or the folder of pictures. Default: report.html in the result folder for html, standard output for text, json, csv and md, the result folder for pictures."`
}

// reportExample is the commands of help.
const reportExample = `A whole small example:

  sparseserve simulate --set workload.requests=40 --out out/small
  sparseserve report out/small              # out/small/report.html, one file that needs no network
  sparseserve report out/small --format md  # the same answer as Markdown`

// Help is shown below the command's help.
func (*reportCmd) Help() string {
	return `All formats say the same: warnings, charts, tables, where each figure of card and engine comes from, and the resolved
configuration. In HTML, charts can be hovered and zoomed. The same folder gives the same bytes.

` + reportExample
}

func (r *reportCmd) Run(ctx context.Context, app *App) error {
	if slices.Contains([]string{"png", "svg", "pdf"}, r.Format) {
		return (&figuresCmd{Folders: []string{r.Folder}, Out: r.Out, Format: []string{r.Format}}).Run(ctx,
			app)
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
	if kind, err := answers.KindOf(r.Folder); err != nil || kind != run.SummaryFile {
		return err
	}
	return noteRuns(app, r.Folder)
}

// render shows a whole document in a format.
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

// write writes the report. It replaces no file of the result folder but an earlier report.
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
