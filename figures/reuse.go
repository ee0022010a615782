package figures

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/internal/files"
)

// describedFile is the description of a trace.
const describedFile = "description.json"

// IsDescription says whether a folder has the description of a trace.
func IsDescription(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, describedFile))
	return err == nil
}

// reuse is what prefix caches have of a trace's prompts.
type reuse struct {
	Model      string       `json:"model"`
	TokenBytes float64      `json:"kv_bytes_token"`
	Block      int          `json:"block_tokens"`
	Prompt     float64      `json:"prompt_tokens"`
	Unbounded  cached       `json:"unbounded"`
	Capacities []cached     `json:"capacities"`
	Curve      [2][]float64 `json:"curve"`
}

type cached struct {
	GiB   float64 `json:"gib"`
	Share float64 `json:"share"`
	// Optimum is the tokens that the best cache of that size has; nil: not known.
	Optimum *float64 `json:"optimum_tokens"`
}

// DrawDescription draws how much of its prompts prefix caches have, by their capacity, of a trace
// described in a folder; nothing of one that does not say what its prompts contain.
func DrawDescription(ctx context.Context, dir, folder string, formats ...string) ([]string, error) {
	path := filepath.Join(folder, describedFile)
	var d struct {
		Path   string `json:"path"`
		Prefix *reuse `json:"prefix"`
	}
	if err := files.ReadJSON(path, &d); err != nil {
		return nil, err
	}
	r := d.Prefix
	if r == nil {
		return nil, nil
	}
	if len(r.Curve[0]) != len(r.Curve[1]) || len(r.Curve[0]) == 0 {
		return nil, fmt.Errorf("%s: prefix.curve: %d capacities of %d shares", path, len(r.Curve[0]),
			len(r.Curve[1]))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return writeAll(ctx, dir, []picture{reusePicture(filepath.Base(d.Path), r)}, formats)
}

func reusePicture(trace string, r *reuse) picture {
	percent := func(x, share float64) point {
		return point{x: x, runs: 1, mean: 100 * share, low: 100 * share, high: 100 * share}
	}
	line := curve{series: "LRU", bare: true}
	for i, x := range r.Curve[0] {
		line.points = append(line.points, percent(x, r.Curve[1][i]))
	}
	c := chart{x: "Capacity (GiB of KV)", y: "Prompt Tokens Found (%)", most: 100,
		levels: []float64{100 * r.Unbounded.Share}}
	across := axis{low: r.Curve[0][0], high: r.Curve[0][len(r.Curve[0])-1] * 1.15, log: true}
	some := curve{series: "LRU, as labelled", dots: true}
	best := curve{series: "Belady's optimum", dots: true}
	for _, p := range r.Capacities {
		if p.GiB < across.low || p.GiB > across.high {
			continue
		}
		some.points = append(some.points, percent(p.GiB, p.Share))
		if p.Optimum != nil && r.Prompt > 0 {
			best.points = append(best.points, percent(p.GiB, *p.Optimum/r.Prompt))
		}
		c.labels = append(c.labels, note{p.GiB, 100 * p.Share,
			fmt.Sprintf("%g GiB: %.1f %%", p.GiB, 100*p.Share)})
	}
	c.across, c.curves = &across, []curve{line}
	for _, dots := range []curve{some, best} {
		if len(dots.points) > 0 {
			c.curves = append(c.curves, dots)
		}
	}
	c.axis = axis{high: min(100, 100*r.Unbounded.Share*1.15+1)}
	return picture{
		file: "prefix", head: "Prefix cache of " + trace, charts: []chart{c},
		caption: fmt.Sprintf("%s, %.4g KiB of KV a token, blocks of %d tokens; requests one after "+
			"another; dashed: without bound %.1f %%, in %.4g GiB", r.Model, r.TokenBytes/1024, r.Block,
			100*r.Unbounded.Share, r.Unbounded.GiB),
	}
}
