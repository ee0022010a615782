package cli

import (
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/report"
)

type reportCmd struct {
	Folder string `arg:"" name:"FOLDER" help:"Result folder of simulate, sweep, plan, whatif, compare or validate, or the folder of a calibration's plots."`
	Out    string `placeholder:"FILE" help:"HTML file to write. Default: report.html in the result folder."`
}

// reportExample is the commands of help.
const reportExample = `A whole small example:

  sparseserve simulate --set workload.requests=40 --out out/small
  sparseserve report out/small              # out/small/report.html, one file that needs no network`

// Help is shown below the command's help.
func (*reportCmd) Help() string {
	return `Warnings come first, then charts to hover and zoom, tables, where each figure of card and engine comes from, and the resolved
configuration. The same folder gives the same bytes.

` + reportExample
}

func (r *reportCmd) Run(app *App) error {
	out := r.Out
	if out == "" {
		out = filepath.Join(r.Folder, "report.html")
	}
	if err := report.Write(out, r.Folder); err != nil {
		return err
	}
	fmt.Fprintln(app.Stdout, inCell(out))
	if kind, err := report.KindOf(r.Folder); err != nil || kind != run.SummaryFile {
		return err
	}
	return noteRuns(app, r.Folder)
}
