package validate

import (
	"fmt"
	"path/filepath"

	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
)

// FitHost fits the host of the live loop to the live runs that a result folder has kept, and
// returns an engine with it (calibrate.FitHost). The calls of their steps must have been kept.
func FitHost(dir string) (*hw.Engine, error) {
	kept, err := keptCalls(dir)
	if err != nil {
		return nil, err
	}
	p, err := hw.Load(kept[0].gpu, kept[0].engine, nil)
	if err != nil {
		return nil, err
	}
	runs := make([]calibrate.HostRun, len(kept))
	for i := range kept {
		runs[i] = calibrate.HostRun{Model: &kept[i].model, Options: kept[i].options, Steps: kept[i].steps}
	}
	return calibrate.FitHost(p, runs, "live runs on "+p.Title)
}

// keptCalls reads the live runs of a folder that have the calls of their steps.
func keptCalls(dir string) (runs []askedRun, err error) {
	paths, err := files.Glob(dir, filepath.Join(liveFolder, "*", callsFile))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s: no live run has the calls of its steps (live/RUN/%s)", dir, callsFile)
	}
	for _, path := range paths {
		r, err := askedIn(filepath.Dir(path))
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
