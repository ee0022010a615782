package cli

import (
	"fmt"

	"sparseserve/figures"
)

type figuresCmd struct {
	Folders []string `arg:"" optional:"" name:"DIR" help:"Result folders; those of several models make several panels. Default: out/default."`
	Out     string   `placeholder:"DIR" help:"Where the PNGs and their CSVs go. Default: the first result folder."`
}

func (f *figuresCmd) Run(app *App) error {
	folders := f.Folders
	if len(folders) == 0 {
		folders = []string{"out/default"}
	}
	out := f.Out
	if out == "" {
		out = folders[0]
	}
	files, err := figures.DrawFolders(out, folders)
	if err != nil {
		return err
	}
	for _, path := range files {
		fmt.Fprintln(app.Stdout, path)
	}
	return nil
}
