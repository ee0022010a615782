package run

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
)

// Files of a result folder.
const (
	ConfigFile   = "config.toml"
	SummaryFile  = "summary.json"
	summaryCSV   = "summary.csv"
	pointsFolder = "points"
	RequestsCSV  = "requests.csv"
	StepsCSV     = "steps.csv"
	traceJSON    = "trace.json"
)

// Folder is the result folder of one experiment:
//
//	config.toml    the resolved configuration
//	summary.json   one object a finished point
//	summary.csv    the same as a table
//	points/        the PointStore, with a folder NAME for each point
//
// Every file appears whole or not at all, and holds nothing that differs between two runs of the
// same configuration by the same program.
type Folder struct {
	Store *PointStore
	dir   string
	new   bool // made by this process
}

// ErrTaken is the error of a folder with results of something else.
var ErrTaken = errors.New("choose another folder, or give --force to replace them")

// OpenFolder opens a result folder for the experiment and a program. A folder of the same
// configuration, program and inputs is continued: its finished points are kept. Results of
// anything else are ErrTaken. With replace, all results that it holds are removed. What no run has
// made is never touched.
func OpenFolder(dir, program string, c *config.Config, replace bool) (*Folder, error) {
	text, err := c.TOML()
	if err != nil {
		return nil, err
	}
	points := filepath.Join(dir, pointsFolder)
	if err := errors.Join(checkMaker(dir), checkInputs(dir, c, text)); err != nil {
		return nil, err
	}
	s, err := lockStore(points, program, true)
	if err != nil {
		return nil, err
	}
	_, statErr := os.Stat(filepath.Join(points, storeFile)) // no other process makes it from here on
	s.named = true
	f := &Folder{Store: s, dir: dir, new: statErr != nil}
	if err := f.start(c, string(text), replace); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// start makes the locked folder ready.
func (f *Folder) start(c *config.Config, text string, replace bool) error {
	if !f.new {
		prepare := func() error { return f.continues(c, text) }
		if replace {
			prepare = f.clear
		}
		if err := prepare(); err != nil {
			return err
		}
	}
	if err := errors.Join(f.Store.checkVersion(), f.Store.clear(),
		ClearLeft(f.dir, ConfigFile, SummaryFile, summaryCSV)); err != nil {
		return err
	}
	return WriteFile(filepath.Join(f.dir, ConfigFile), []byte(text))
}

// checkMaker refuses a folder with files of these names that no experiment has made.
func checkMaker(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, pointsFolder, storeFile)); err == nil {
		if _, err := os.Stat(filepath.Join(dir, indexFile)); err == nil {
			return fmt.Errorf("%s: holds a sweep; choose another folder", dir)
		}
		return nil
	}
	for _, name := range []string{ConfigFile, SummaryFile, summaryCSV, pointsFolder} {
		path := filepath.Join(dir, name)
		kept, err := os.ReadDir(path)
		if err == nil && !slices.ContainsFunc(kept,
			func(e fs.DirEntry) bool { return e.Name()[0] != '.' }) {
			continue // another process is about to make it
		}
		if _, err := os.Stat(filepath.Join(dir, pointsFolder, storeFile)); err == nil {
			return nil // another process has made it since
		}
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s: holds %s, but not from a run that this version continues; choose "+
				"another folder", dir, name)
		}
	}
	return nil
}

// checkInputs refuses a folder with a file that the command reads, but for the configuration that a
// run in it was made by.
func checkInputs(dir string, c *config.Config, text []byte) error {
	inputs, own := c.Paths(), filepath.Join(dir, ConfigFile)
	if kept, err := files.ReadResult(own); err == nil && bytes.Equal(kept, text) {
		inputs = slices.DeleteFunc(inputs, func(path string) bool { return filepath.Clean(path) == own })
	}
	return files.CheckFolder(dir, inputs...)
}

// continues says how the folder's results differ from what is to be run.
func (f *Folder) continues(c *config.Config, text string) error {
	switch err := f.Store.checkVersion(); {
	case errors.Is(err, errVersion):
		return fmt.Errorf("%s: holds results of another version of the model: %w", f.dir, ErrTaken)
	case err != nil:
		return fmt.Errorf("%w: %w", err, ErrTaken)
	}
	kept, err := files.ReadResult(filepath.Join(f.dir, ConfigFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if line := firstOther(string(kept), text); err == nil && line != "" {
		return fmt.Errorf("%s: holds results of another configuration (%s): %w", f.dir, line, ErrTaken)
	}
	for _, p := range c.Points() {
		m, err := ReadManifest(filepath.Join(f.Store.dir, p.Name))
		if err != nil {
			continue // not there, or damaged
		}
		if hash, err := f.Store.Hash(&p); err != nil {
			return err
		} else if m.Hash != hash {
			return fmt.Errorf("%s: holds results of another trace, model or profile than is read now: %w",
				f.dir, ErrTaken)
		}
	}
	return nil
}

// firstOther is the first line of one text that another has not, or else of the other.
func firstOther(a, b string) string {
	for _, pair := range [][2]string{{a, b}, {b, a}} {
		lines := strings.Split(pair[1], "\n")
		for line := range strings.Lines(pair[0]) {
			if line = strings.TrimRight(line, "\n"); !slices.Contains(lines, line) {
				return strings.TrimSpace(line)
			}
		}
	}
	return ""
}

// clear removes the results that the folder holds, and no other files.
func (f *Folder) clear() error {
	err := f.Store.writeVersion()
	entries, e := os.ReadDir(f.Store.dir)
	err = errors.Join(err, e)
	for _, entry := range entries {
		point := filepath.Join(f.Store.dir, entry.Name())
		if _, e := os.Stat(filepath.Join(point, ManifestFile)); e == nil {
			err = errors.Join(err, os.RemoveAll(point))
		}
	}
	for _, name := range []string{SummaryFile, summaryCSV} {
		if e := os.Remove(filepath.Join(f.dir, name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, clearPictures(f.dir))
}

// Dir returns the result folder.
func (f *Folder) Dir() string { return f.dir }

// Finish writes the tables of all results and names the files of the folder, points apart.
func (f *Folder) Finish(results []Result) ([]string, error) {
	sums := Summaries(results)
	text, err := Marshal(sums)
	if err != nil {
		return nil, err
	}
	files := []string{filepath.Join(f.dir, ConfigFile), filepath.Join(f.dir, SummaryFile),
		filepath.Join(f.dir, summaryCSV)}
	if err := WriteFile(files[1], text); err != nil {
		return nil, KeptWhenFull(err)
	}
	return files, KeptWhenFull(WriteFile(files[2], tabulate(sums).Bytes()))
}

// Close unlocks the folder. One that this process made, and in which no point finished, goes.
func (f *Folder) Close() error {
	if entries, err := os.ReadDir(f.Store.dir); f.new && err == nil &&
		!slices.ContainsFunc(entries, fs.DirEntry.IsDir) {
		for _, path := range []string{
			filepath.Join(f.Store.dir, storeFile), filepath.Join(f.Store.dir, LockFile), f.Store.dir,
			filepath.Join(f.dir, ConfigFile), f.dir,
		} {
			os.Remove(path) // folders only when they are empty
		}
	}
	return f.Store.Close()
}
