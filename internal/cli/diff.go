package cli

import (
	"github.com/sparseserve/sparseserve/experiments/diff"
	"github.com/sparseserve/sparseserve/internal/answers"
)

type diffCmd struct {
	A    string `arg:"" name:"A" help:"Result folder of simulate or sweep."`
	B    string `arg:"" name:"B" help:"Result folder to compare with it."`
	All  bool   `help:"Show also what does not differ."`
	JSON bool   `name:"json" help:"Print one JSON object and nothing else."`
}

// Help is what the command's help adds.
func (*diffCmd) Help() string {
	return `Points are matched by system, model, card, rate and swept keys; what is constant in each
folder may differ, so that two cards, models or versions can be compared. Over the seeds that both
have, the difference has a 95 % interval (Student's t of the differences seed by seed), and only
what this interval separates from 0 is shown. With one seed, all that differs is shown.`
}

func (d *diffCmd) Run(app *App) error {
	a, err := diff.Read(d.A)
	if err != nil {
		return err
	}
	b, err := diff.Read(d.B)
	if err != nil {
		return err
	}
	report, err := diff.Compare(a, b)
	if err != nil {
		return err
	}
	if d.JSON {
		return printJSON(app, report)
	}
	return app.print(answers.Diff(report, d.A, d.B, d.All), nil)
}
