package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"

	"github.com/schollz/progressbar/v3"

	"sparseserve/experiments"
)

// paperFolder is where the paper's figures and their results go.
const paperFolder = "out/paper"

// runLab runs experiments of the paper, with a bar of finished runs on a
// terminal.
func runLab(ctx context.Context, app *App, dir string, workers int, scale float64, names ...string) error {
	version, err := programVersion()
	if err != nil {
		return err
	}
	bar := &labProgress{w: app.Stderr}
	lab := experiments.Lab{Dir: dir, Run: app.Run, Version: version, Workers: workers, Scale: scale,
		Planned: bar.planned, Finished: bar.finished}
	err = lab.Do(ctx, names...)
	bar.close()
	if cause := ctx.Err(); cause != nil && errors.Is(err, cause) {
		return errInterrupted
	}
	return err
}

// programVersion is a digest of the running program: what another build left
// may differ.
func programVersion() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// labProgress is a bar of runs whose number becomes known on the way.
type labProgress struct {
	w     io.Writer
	bar   *progressbar.ProgressBar
	total int
}

func (p *labProgress) planned(runs int) {
	if !isTerminal(p.w) {
		return
	}
	if p.total += runs; p.bar == nil {
		p.bar = progressbar.NewOptions(p.total,
			progressbar.OptionSetWriter(p.w),
			progressbar.OptionSetDescription("runs"),
			progressbar.OptionShowCount(),
			progressbar.OptionFullWidth(),
			progressbar.OptionClearOnFinish(),
		)
		return
	}
	p.bar.ChangeMax(p.total)
}

func (p *labProgress) finished() {
	if p.bar != nil {
		p.bar.Add(1)
	}
}

func (p *labProgress) close() {
	if p.bar != nil {
		p.bar.Finish()
	}
}
