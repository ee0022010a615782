package answers

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// kind is a kind of result folder, identified by a file that no other kind has.
type kind struct {
	file string
	read func(dir string) (*doc.Doc, error)
}

// kinds lists all kinds of folders. If a folder matches two kinds, the first holds.
var kinds = []kind{
	{"whatif.json", readWhatIf},
	{"purchase.json", readPurchase},
	{capacity.GoodputFile, readGoodput},
	{"compare.json", readComparison},
	{ValidationFile, readValidation},
	{fitsFile, readCalibration},
	{DescriptionFile, readTrace},
	{run.SummaryFile, readRuns},
}

// Read builds the document of a result folder. A folder without results is an error.
func Read(dir string) (*doc.Doc, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such folder; give the result folder of a command, as its --out "+
			"or its last lines name it", dir)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: a file; want the result folder of a command", dir)
	}
	var names []string
	for _, k := range kinds {
		if _, err := os.Stat(filepath.Join(dir, k.file)); err == nil {
			return k.read(dir)
		}
		names = append(names, k.file)
	}
	return nil, fmt.Errorf("%s: no finished results of simulate, goodput, plan, whatif, compare, "+
		"validate, calibrate or trace describe: none of %s is there; give the folder that such a "+
		"command names, or the same command again if it was interrupted", dir, strings.Join(names, ", "))
}

// nameOf returns the folder's own name.
func nameOf(dir string) string {
	full, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return filepath.Base(full)
}

// readJSON reads a file of the folder.
func readJSON(dir, name string, into any) error {
	return files.ReadJSON(filepath.Join(dir, name), into)
}

// readRuns builds the document of simulations and sweeps.
func readRuns(dir string) (*doc.Doc, error) {
	stored, err := run.ReadRows(dir)
	if err != nil {
		return nil, err
	}
	of, folders, swept, err := runFolders(dir)
	if err != nil {
		return nil, err
	}
	r := Runs{Name: nameOf(dir), Unit: "requests/s"}
	for i := range stored {
		r.Sums = append(r.Sums, stored[i].Summary)
		r.Folders = append(r.Folders, of[stored[i].Name])
		if swept {
			r.Settings = append(r.Settings, stored[i].Settings)
		}
	}
	var rests doc.Doc
	if r.Systems, err = restOn(&rests, folders, nil); err != nil {
		return nil, err
	}
	if configs := configsOf(append([]string{dir}, folders...)); len(configs) > 0 {
		r.Asked, r.Unit = []string{Ran(configs...)}, capacity.RateUnit(&configs[0][0].Workload)
		r.DefaultTBT = DefaultTBT(configs...)
	}
	p := r.Doc()
	if p.Figures, err = r.Figures(); err != nil {
		return nil, err
	}
	p.Tables = append(p.Tables, rests.Tables...)
	p.Warnings = append(p.Warnings, r.withoutRequests()...)
	addFile(p, filepath.Join(dir, run.ConfigFile), run.ConfigFile)
	if swept && len(folders) > 0 {
		addFile(p, filepath.Join(folders[0], run.ConfigFile), "config.toml of the first run, "+
			r.Sums[0].Name)
	}
	return p, nil
}

// withoutRequests warns of runs that served requests and whose requests.csv is not kept.
func (r *Runs) withoutRequests() []warn.Warning {
	served := where(r.Sums, func(s *metrics.Summary) bool { return s.Completed > 0 })
	without := 0
	for i, folder := range r.Folders {
		if r.Sums[i].Completed > 0 && (folder == "" ||
			!files.HasResult(filepath.Join(folder, run.RequestsCSV))) {
			without++
		}
	}
	if without == 0 {
		return nil
	}
	return []warn.Warning{warn.New(warn.NoRequests, "%d of %d runs have no %s, so the distributions "+
		"of latencies lack them; the command that made the folder makes them again", without,
		len(served), run.RequestsCSV)}
}

// runFolders lists the folders of the runs, each with its configuration. of maps the label of a run
// to its folder. swept is set if axes distinguish the runs. A folder without an index has at most
// its own configuration.
func runFolders(dir string) (of map[string]string, folders []string, swept bool, err error) {
	index, err := run.ReadIndex(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, []string{dir}, false, nil
	}
	of = map[string]string{}
	for _, r := range index.Runs {
		folder := filepath.Join(dir, filepath.FromSlash(r.Folder))
		of[r.Label], folders = folder, append(folders, folder)
	}
	return of, folders, len(index.Axes) > 0, err
}

// machine is the hardware part of a configuration.
type machine struct {
	GPU     string             `toml:"gpu"`
	Card    map[string]float64 `toml:"card"`
	Systems []struct {
		Name   string `toml:"name"`
		Engine string `toml:"engine"`
	} `toml:"systems"`
}

// restOn adds the figures of the machines of runs, each once, with their sources, and returns the
// systems with their engines. A folder without a configuration adds nothing. Machines that wanted
// refuses add no figures.
func restOn(d *doc.Doc, folders []string, wanted func(*machine) bool) (systems []sim.Spec,
	err error) {
	seen := map[string]bool{}
	for _, folder := range folders {
		path := filepath.Join(folder, "config.toml")
		text, err := files.ReadResult(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var m machine
		if err := files.DecodeTOML(path, string(text), &m); err != nil {
			return nil, err
		}
		for _, s := range m.Systems {
			systems = append(systems, sim.Spec{Name: s.Name, Engine: s.Engine})
			key := fmt.Sprint(m.GPU, " ", s.Engine, " ", m.Card)
			if m.GPU == "" || s.Engine == "" || seen[key] || wanted != nil && !wanted(&m) {
				continue
			}
			seen[key] = true
			t, err := m.figures(s.Engine)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			d.Tables = append(d.Tables, t)
		}
	}
	return systems, nil
}

// figures returns a table of the figures of the card and of an engine, with their sources and the
// sources of the kernels' costs.
func (m *machine) figures(engine string) (t doc.Table, err error) {
	c, e, k, derived, err := machineOf(m.GPU, engine)
	if err != nil {
		return t, err
	}
	var set []hw.NamedFigure
	keys, units := hw.ChangeKeys()
	for i, key := range keys {
		if v, ok := m.Card[key]; ok {
			set = append(set, hw.NamedFigure{Key: "card." + key, Figure: hw.Figure{Value: v, Unit: units[i],
				From: "set", Source: "the configuration, in place of the card's own"}})
		}
	}
	t = figuresTable(slices.Concat(set, c.Figures(), e.Figures()))
	t.Under, t.Folded = "What the numbers rest on", true
	t.Title = fmt.Sprintf("%s with engine %s", c.Title, e.Name)
	if len(m.Card) > 0 {
		t.Title += ", with " + strings.Join(slices.Sorted(maps.Keys(m.Card)), ", ") + " set"
	}
	t.Note = fmt.Sprintf("Kernels: %s, %s: %s. sparseserve list gpus and list engines print all "+
		"figures.", k.Name, OriginOf(k, derived), k.Title)
	return t, nil
}

// onMachines adds to an answer from a folder what the machines of its runs rest on, and the
// configuration of the first.
func onMachines(d *doc.Doc, folders []string, wanted func(*machine) bool) (*doc.Doc, error) {
	if _, err := restOn(d, folders, wanted); err != nil || len(folders) == 0 {
		return d, err
	}
	addFile(d, filepath.Join(folders[0], run.ConfigFile), run.ConfigFile)
	return d, nil
}
