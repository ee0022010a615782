package validate

import (
	"github.com/sparseserve/sparseserve/calibrate"
	"github.com/sparseserve/sparseserve/hw"
)

// FitHost fits the host of the live loop to the live runs that a result folder has kept, and
// returns an engine with it (calibrate.FitHost). The calls of their steps must have been kept.
func FitHost(dir string) (*hw.Engine, error) {
	kept, err := askedRuns(dir)
	if err != nil {
		return nil, err
	}
	p, err := hw.Load(kept[0].gpu, kept[0].engine, nil)
	if err != nil {
		return nil, err
	}
	runs := make([]calibrate.HostRun, len(kept))
	for i := range kept {
		runs[i] = kept[i].HostRun
	}
	return calibrate.FitHost(p, runs, "live runs on "+p.Title)
}
