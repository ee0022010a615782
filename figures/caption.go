package figures

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// captionOf says what was run: card, model, trace, requests, seeds, and what axes of the
// experiment set in all runs. The key of the abscissa is no news.
func captionOf(runs []Run, x abscissa) string {
	var where, models, cards, systems, traces, counts, seeds, words []string
	for i := range runs {
		r := &runs[i]
		models = append(models, modelLabel(r.Model))
		if where = append(where, modelLabel(r.Model)); r.GPU != "" {
			cards = append(cards, gpuLabel(r.GPU))
			where[i] += " on " + gpuLabel(r.GPU)
		}
		systems = append(systems, label(r.System))
		if r.trace != "" {
			traces = append(traces, r.trace)
		}
		if r.Requests > 0 {
			counts = append(counts, strconv.Itoa(r.Requests))
		}
		seeds = append(seeds, strconv.FormatUint(r.Seed, 10))
	}
	if all := unique(where); len(all) <= 2 && len(unique(models)) > 1 || len(all) == 1 {
		words = append(words, strings.Join(all, " and "))
	} else { // panels name them
		words = append(words, list(unique(models))+" on "+list(unique(cards)))
	}
	if all := unique(systems); len(all) == 1 && all[0] != "" {
		words = append(words, all[0])
	}
	if all := unique(traces); len(all) > 0 {
		words = append(words, list(all))
	}
	if all := unique(counts); len(all) > 0 {
		words = append(words, list(all)+" requests")
	}
	if x.key != "" { // the load is no axis and no group of bars
		words = append(words, loadName(&runs[0]))
	}
	for _, key := range settingsOf(runs) {
		if !named(key) && key != x.key && !differs(runs, key) &&
			!slices.Contains(traces, runs[0].text(key)) {
			words = append(words, setting(key, runs[0].Settings[key]))
		}
	}
	return strings.Join(append(words, seedsText(unique(seeds))), ", ") +
		unlike("engines", runs, func(r *Run) string { return r.engine })
}

func seedsText(seeds []string) string {
	if len(seeds) == 1 {
		return "seed " + seeds[0]
	}
	return "seeds " + list(seeds)
}

// captioned is the caption with what intervals are.
func (p *picture) captioned() string {
	all := p.intervals()
	if all.most < 2 {
		return p.caption
	}
	runs := strconv.Itoa(all.least)
	if all.most > all.least {
		runs += " to " + strconv.Itoa(all.most)
	}
	runs += " " + cmp.Or(p.means, "runs")
	text := "95 % intervals of the mean of " + runs + " are in the CSV"
	switch {
	case all.dots:
		text = "Small dots: each of " + runs + "; five or more have a 95 % interval of the mean"
	case all.bands:
		text = "Bands and whiskers: 95 % interval of the mean of " + runs
	case all.whiskers:
		text = "Whiskers: 95 % interval of the mean of " + runs
	}
	if p.caption != "" {
		text = p.caption + ". " + text
	}
	return text + "."
}

// drawn says which intervals a picture has, of how many runs, and how it draws them.
type drawn struct {
	least, most     int // runs
	bands, whiskers bool
	dots            bool // of single runs
}

func (d *drawn) add(q point, whiskered bool) {
	if q.high <= q.low {
		return
	}
	if d.least == 0 || q.runs < d.least {
		d.least = q.runs
	}
	d.most = max(d.most, q.runs)
	d.whiskers = d.whiskers || whiskered && q.values == nil
	d.dots = d.dots || whiskered && q.values != nil
}

func (p *picture) intervals() drawn {
	var d drawn
	for i := range p.charts {
		c := &p.charts[i]
		for j := range c.curves {
			one := &c.curves[j]
			for _, q := range one.points {
				if q.mean <= c.axis.high {
					d.add(q, c.whiskered(one))
				}
			}
			d.bands = d.bands || c.banded(one)
		}
		for _, g := range c.groups {
			for j := range g.bars {
				if b := &g.bars[j]; b.whiskered() {
					d.add(b.height(), true)
				}
			}
		}
	}
	return d
}

// servedOf fills in the trace and the engine of each run of a result folder, where a configuration
// is there that names them.
func servedOf(dir string, runs []Run) error {
	folders, err := pointFolders(dir)
	if err != nil {
		return err
	}
	for i := range runs {
		r := &runs[i]
		r.folder = folders[r.Name]
		r.trace = base(r.text("workload.trace"))
		for _, folder := range []string{r.folder, dir} {
			var c struct {
				Workload struct {
					Trace string `toml:"trace"`
				} `toml:"workload"`
				Systems []struct {
					Engine string `toml:"engine"`
				} `toml:"systems"`
			}
			path := filepath.Join(folder, "config.toml")
			text, err := files.ReadResult(path)
			if folder == "" || err != nil {
				continue
			}
			if err := files.DecodeTOML(path, string(text), &c); err != nil {
				return err
			}
			r.trace = cmp.Or(r.trace, base(c.Workload.Trace))
			if len(c.Systems) == 1 { // a run's own
				r.engine = cmp.Or(r.engine, c.Systems[0].Engine)
			}
		}
	}
	return nil
}

// base is the last part of a path, and empty of an empty one.
func base(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}

// unlike says that runs differ in something by which they should be compared alike, as in
// "different engines: vllm-0.5 (vLLM), vllm-0.15 (SparseServe)"; empty where they do not.
func unlike(what string, runs []Run, of func(*Run) string) string {
	var values []string
	series := map[string][]string{}
	for i := range runs {
		v := of(&runs[i])
		if v == "" {
			continue
		}
		if !slices.Contains(values, v) {
			values = append(values, v)
		}
		if name := cmp.Or(runs[i].series, label(runs[i].System)); !slices.Contains(series[v], name) {
			series[v] = append(series[v], name)
		}
	}
	if len(values) < 2 {
		return ""
	}
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v + " (" + list(series[v]) + ")"
	}
	return ". Not alike, different " + what + ": " + strings.Join(words, "; ")
}

// pointFolders are the folders of the runs of a result folder, by name: points/NAME, or
// what the index of a sweep says.
func pointFolders(dir string) (map[string]string, error) {
	folders := map[string]string{}
	var index struct {
		Points []struct {
			Label  string `json:"label"`
			Folder string `json:"folder"`
		} `json:"points"`
	}
	switch err := files.ReadJSON(filepath.Join(dir, "sweep.json"), &index); {
	case err == nil:
		for _, p := range index.Points {
			folders[p.Label] = filepath.Join(dir, filepath.FromSlash(p.Folder))
		}
		return folders, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "points"))
	for _, e := range entries {
		folders[e.Name()] = filepath.Join(dir, "points", e.Name())
	}
	return folders, nil
}
