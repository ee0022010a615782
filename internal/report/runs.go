package report

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/figures"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// summary is a run, with what the axes of a sweep set.
type summary struct {
	sim.Summary
	Settings map[string]any `json:"settings"`
}

// mostTimelines is how many runs a report shows step by step, mostRows how many rows of a table
// it shows unasked.
const (
	mostTimelines = 4
	mostRows      = 60
)

// readRuns makes the page of a simulation or a sweep.
func readRuns(dir string) (*page, error) {
	var runs []summary
	if err := readJSON(dir, "summary.json", &runs); err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: no run", filepath.Join(dir, "summary.json"))
	}
	folders, swept, err := runFolders(dir)
	if err != nil {
		return nil, err
	}
	p := &page{Title: nameOf(dir) + ": simulated runs"}
	if swept {
		p.Title = nameOf(dir) + ": sweep"
	}
	var warnings []warn.Said
	var levels []string
	served := false
	for i := range runs {
		r := &runs[i]
		served = served || r.Completed > 0
		for _, w := range r.Warnings {
			warnings = append(warnings, warn.Said{Warning: w, Of: r.Name})
		}
		if r.SLO != "" && !slices.Contains(levels, r.SLO) {
			levels = append(levels, r.SLO)
		}
	}
	systems, err := p.restOn(folders)
	if err != nil {
		return nil, err
	}
	p.warn(systems, warnings, len(runs))
	if served {
		all, err := figures.RunsData(dir)
		if err != nil {
			return nil, err
		}
		p.addFigures(all)
	}
	if len(levels) == 1 {
		p.Lead = append(p.Lead, "SLO: "+levels[0]+".")
	}
	p.Tables = append(p.Tables, runsTable(runs))
	p.addFile(filepath.Join(dir, "config.toml"), "config.toml")
	if swept && len(folders) > 0 {
		p.addFile(filepath.Join(folders[0], "config.toml"), "config.toml of the first run, "+runs[0].Name)
	}
	return p, nil
}

// runFolders lists the folders of the runs, each with its configuration.
func runFolders(dir string) (folders []string, swept bool, err error) {
	var index struct {
		Points []struct {
			Folder string `json:"folder"`
		} `json:"points"`
	}
	err = readJSON(dir, "sweep.json", &index)
	switch {
	case err == nil:
		for _, point := range index.Points {
			folders = append(folders, filepath.Join(dir, filepath.FromSlash(point.Folder)))
		}
		return folders, true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, false, err
	}
	if folders = pointFolders(dir); len(folders) == 0 {
		folders = []string{dir}
	}
	return folders, false, nil
}

// pointFolders lists what is in points/ of a folder.
func pointFolders(dir string) (folders []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, "points"))
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			folders = append(folders, filepath.Join(dir, "points", e.Name()))
		}
	}
	return folders
}

// load is the section of the pictures over what varies.
const load = "Latency and throughput"

// titles are of the pictures of runs, by the beginning of their names.
var titles = []struct{ name, title string }{
	{"ttft", load}, {"throughput", load}, {"tbt", load}, {"goodput", load},
	{"time", "Where the time of a step went"}, {"cdf", "Distributions"},
	{"distributions", "Distributions, measured and simulated"}, {"error", "Error over time"},
}

// addFigures adds a section for each figure; what all captions begin with is said once. Time lines
// come last: it is the first few runs' that are shown.
func (p *page) addFigures(all []figures.Figure) {
	if len(all) == 0 {
		return
	}
	lead, _, _ := strings.Cut(all[0].Caption, ". ")
	lead = strings.TrimSuffix(lead, ".")
	p.Lead = append(p.Lead, lead+".")
	timelines := 0
	for _, f := range all {
		s := section{Title: f.Name,
			Note: strings.TrimLeft(strings.TrimPrefix(strings.TrimPrefix(f.Caption, lead), "."), " ")}
		for _, t := range titles {
			if f.Name == t.name || strings.HasPrefix(f.Name, t.name+"-") {
				s.Title = t.title
				break
			}
		}
		if run, ok := strings.CutPrefix(f.Name, "timeline-"); ok {
			if timelines++; timelines > mostTimelines {
				continue
			}
			s.Title = "Over time: " + run
		}
		for _, c := range f.Charts {
			s.Charts = append(s.Charts, chartOf(c))
		}
		if n := len(p.Sections); n > 0 && p.Sections[n-1].Title == s.Title {
			p.Sections[n-1].Charts = append(p.Sections[n-1].Charts, s.Charts...)
			continue
		}
		p.Sections = append(p.Sections, s)
	}
	if timelines > mostTimelines {
		p.Sections[len(p.Sections)-1].Note += fmt.Sprintf(" The time lines of %d more runs are "+
			"pictures in the folder.", timelines-mostTimelines)
	}
}

func chartOf(c figures.Chart) *chart {
	if t := c.Title; len(t) > 3 && t[0] == '(' && 'a' <= t[1] && t[1] <= 'z' && t[2:4] == ") " {
		c.Title = t[4:]
	}
	if len(c.Bars) > 0 {
		return &chart{Kind: "bars", Chart: c}
	}
	return &chart{Kind: "lines", Chart: c}
}

// runsTable has a row a run: what axes set that differs, then its figures.
func runsTable(runs []summary) table {
	axes := axesOf(runs)
	t := table{Title: "Runs", Header: []string{"run"}, Folded: len(runs) > mostRows}
	for _, key := range axes {
		t.Header = append(t.Header, key[strings.LastIndexByte(key, '.')+1:])
	}
	t.Right = len(t.Header)
	t.Header = append(t.Header, "served %", "TTFT mean s", "TTFT P99 s", "TBT mean ms", "TBT P99 ms",
		"output tok/s", "delay mean s", "batch", "loads/step", "hits %")
	cached := slices.ContainsFunc(runs, func(r summary) bool { return r.PrefixCache != nil })
	if cached {
		t.Header = append(t.Header, "prefix hits %")
	}
	t.Header = append(t.Header, "SLO")
	for i := range runs {
		r := &runs[i]
		row := []string{r.Name}
		for _, key := range axes {
			row = append(row, strings.Trim(config.Show(r.Settings[key]), `"`))
		}
		loads, hits, level := "-", "-", "no"
		if r.HitRatio > 0 || r.BlocksLoadedPerStep > 0 {
			loads, hits = digits(r.BlocksLoadedPerStep), digits(100*r.HitRatio)
		}
		switch met, known := r.MetSLO(); {
		case !known:
			level = "-"
		case met:
			level = "met"
		}
		row = append(row, digits(100*(1-r.RejectedShare())), digits(r.TTFT.Mean),
			digits(r.TTFT.P99),
			digits(1e3*r.TBT.Mean), digits(1e3*r.TBT.P99), digits(r.ThroughputTokS),
			digits(r.QueueDelay.Mean), digits(r.BatchMean), loads, hits)
		switch {
		case r.PrefixCache != nil:
			row = append(row, digits(100*r.PrefixCache.HitShare))
		case cached:
			row = append(row, "-")
		}
		t.Rows = append(t.Rows, append(row, level))
	}
	return t
}

// axesOf lists the keys that differ between runs and that their names do not say.
func axesOf(runs []summary) []string {
	values := map[string]map[string]bool{}
	for i := range runs {
		for key, v := range runs[i].Settings {
			if values[key] == nil {
				values[key] = map[string]bool{}
			}
			values[key][config.Show(v)] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(values)), func(key string) bool {
		return len(values[key]) < 2 ||
			slices.Contains([]string{"system.preset", "workload.rate", "workload.concurrency", "seed"}, key)
	})
}
