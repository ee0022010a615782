package figures

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Draw writes ttft, throughput, tbt, goodput and time as pictures and CSV into dir and returns the
// paths of the pictures, in the formats asked for or as PNG. Points whose queue was
// unstable are hollow. Where the runs' requests and steps are there, cdf and
// timeline-RUN are drawn of them.
func Draw(ctx context.Context, dir string, runs []Run, formats ...string) ([]string, error) {
	return drawRunsOf(ctx, dir, runs, "", formats)
}

func drawRunsOf(ctx context.Context, dir string, runs []Run, caption string,
	formats []string) ([]string, error) {
	pictures, err := picturesOf(dir, runs, caption)
	if err != nil {
		return nil, err
	}
	return writeAll(ctx, dir, pictures, formats)
}

// picturesOf are the pictures of runs, under a caption that says what was run; empty for one made
// of the runs' summaries.
func picturesOf(dir string, runs []Run, caption string) ([]picture, error) {
	runs = tellApart(runs)
	p := panels(runs)
	if len(p) == 0 {
		return nil, fmt.Errorf("%s: no run finished a request, so there is nothing to draw", dir)
	}
	x := abscissaOf(runs)
	nameSeries(runs, x)
	p = panels(runs)
	var pictures []picture
	drawn := metrics()
	if hasGoodput(runs) {
		drawn = append(drawn, goodput())
	}
	if len(p) == 1 && len(p[0].runs) == 1 {
		alone, err := oneRun(&p[0].runs[0])
		if err != nil {
			return nil, err
		}
		if len(alone.charts) > 0 {
			pictures, drawn = append(pictures, alone), nil
		}
	}
	for _, m := range drawn {
		pictures = append(pictures, m.picture(p, x))
	}
	pictures = append(pictures, attribution(p, x)...)
	for i := range pictures {
		pictures[i].caption = cmp.Or(caption, captionOf(runs, x))
		if pictures[i].file == goodput().file {
			pictures[i].caption += unlike("service levels", runs, func(r *Run) string { return r.SLO })
		}
	}
	more, err := inside(runs, p, x, caption)
	if err != nil {
		return nil, err
	}
	return append(pictures, more...), nil
}

// DrawFolders draws the runs of result folders together, a panel for each
// model and card, into dir. What equally named systems of them have otherwise is in the legend.
// The caption says what was run; empty for one made of the summaries.
func DrawFolders(ctx context.Context, dir string, folders []string, caption string,
	formats ...string) ([]string, error) {
	var runs []Run
	for i, f := range folders {
		if slices.ContainsFunc(folders[:i], func(other string) bool {
			return filepath.Clean(other) == filepath.Clean(f)
		}) {
			continue
		}
		more, err := Read(f)
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return drawRunsOf(ctx, dir, runs, caption, formats)
}

// panelTitle letters panels where there are several.
func panelTitle(i, of int, name string) string {
	if of < 2 {
		return ""
	}
	return fmt.Sprintf("(%c) %s", 'a'+i, name)
}
