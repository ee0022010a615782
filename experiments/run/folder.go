package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Files of a result folder.
const (
	QuestionFile = "question.toml"
	IndexFile    = "index.json"
	RunsFolder   = "runs"
	summaryCSV   = "summary.csv"
	PicturesCSV  = "pictures.csv" // numbers of the pictures, each by its name
)

// Folder is the result folder of a command:
//
//	question.toml  the question
//	index.json     the version of the model, the places of runs, and the files of the results
//	config.toml    the resolved configuration, if all runs have the same
//	summary.json   one object per finished run, and summary.csv, the same as a table
//	runs/          the Store, unless it is elsewhere
//
// Plans and what-ifs have an answer instead of the summaries. Every file is written atomically.
// Files are identical between two runs of the same question by the same program.
type Folder struct {
	Store    *Store
	dir      string
	question *Question
	index    Index
	lock     *os.File // of dir, where the runs are kept elsewhere
	apart    bool     // the runs are kept elsewhere
	shared   bool     // with runs of other folders
	fresh    bool     // made by this process, and nothing finished in it before
}

// ErrTaken is the error of a folder with results of another question.
var ErrTaken = errors.New("choose another folder, or give --force to replace them")

// OpenFolder opens a result folder for a question and a version of the program. Runs are stored in
// folder elsewhere, or with the results if it is empty. A folder with the same question is
// continued: its finished runs are reused. So is a folder whose finished runs are all part of this
// question. Other results are ErrTaken; with replace their files are removed and finished runs
// stay. Files that no command has made are never touched.
func OpenFolder(dir, version string, q *Question, elsewhere string, replace bool) (*Folder, error) {
	if err := errors.Join(checkMaker(dir), q.checkInputs(dir)); err != nil {
		return nil, err
	}
	runs := cmp.Or(elsewhere, filepath.Join(dir, RunsFolder))
	if filepath.Clean(runs) == filepath.Clean(dir) {
		return nil, fmt.Errorf("--points %s: is the result folder; choose a folder within it or another",
			elsewhere)
	}
	f := &Folder{dir: dir, question: q, apart: elsewhere != ""}
	if err := f.continues(version, runs, replace); err != nil {
		return nil, err
	}
	err := error(nil)
	if f.apart {
		f.lock, err = lockDir(dir, true)
	}
	if err == nil {
		f.Store, err = OpenStore(runs, version, true)
	}
	if err == nil { // another process may have made it since
		err = f.continues(version, runs, replace)
	}
	if err == nil {
		err = f.start()
	}
	if err != nil {
		return nil, errors.Join(err, f.unlock())
	}
	return f, nil
}

// StartFolder starts the folder of a question whose runs are in a shared store.
func StartFolder(dir string, store *Store, q *Question) (*Folder, error) {
	f := &Folder{Store: store, dir: dir, question: q, apart: true, shared: true}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f.index, _ = ReadIndex(dir) // one that is damaged is replaced
	return f, f.start()
}

// checkMaker refuses a folder with files of these names that this program did not make.
func checkMaker(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, IndexFile)); err == nil {
		return nil
	}
	for _, name := range []string{ConfigFile, SummaryFile, summaryCSV, QuestionFile, "question.txt",
		"sweep.json", "points/store.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return fmt.Errorf("%s: holds %s, but no results that this version of sparseserve continues; "+
				"choose another folder", dir, name)
		}
	}
	return nil
}

// checkInputs refuses a folder that contains an input of the command, except the configuration
// written by an earlier run.
func (q *Question) checkInputs(dir string) error {
	inputs, own := q.Inputs, filepath.Join(dir, ConfigFile)
	if kept, err := files.ReadResult(own); err == nil && bytes.Equal(kept, q.Config) {
		inputs = slices.DeleteFunc(slices.Clone(inputs),
			func(path string) bool { return filepath.Clean(path) == own })
	}
	return files.CheckFolder(dir, inputs...)
}

// lockDir creates a folder and locks it; alone, against all other processes.
func lockDir(dir string, alone bool) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	lock, err := LockFolder(filepath.Join(dir, LockFile), alone)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return lock, nil
}

// continues refuses a folder that holds the results of another question, unless they are replaced.
func (f *Folder) continues(version, runs string, replace bool) error {
	before, err := ReadIndex(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		f.fresh = true
		return nil
	}
	f.fresh, f.index = false, before
	if replace {
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", err, ErrTaken)
	case before.Version != version:
		return fmt.Errorf("%s: holds results of another version of the model (%q, this is %q): %w", f.dir,
			before.Version, version, ErrTaken)
	case before.Command != f.question.Command:
		return fmt.Errorf("%s: holds results of %s: %w", f.dir, before.Command, ErrTaken)
	case f.question.Runs == nil:
		return f.sameQuestion(version)
	}
	return f.losesNone(before, version, runs)
}

// sameQuestion refuses a folder with the answer to another question.
func (f *Folder) sameQuestion(version string) error {
	before, err := files.ReadResult(filepath.Join(f.dir, QuestionFile))
	if err == nil && !bytes.Equal(before, f.question.toml(version)) {
		return fmt.Errorf("%s: holds the answer to another question (%s): %w", f.dir, QuestionFile,
			ErrTaken)
	}
	return ignoreAbsent(err)
}

// losesNone refuses a folder with finished runs that this question does not include, because the
// tables would lose them.
func (f *Folder) losesNone(before Index, version, runs string) error {
	own := map[string]bool{}
	for i := range f.question.Runs {
		own[DigestOf(f.question.Runs[i].Hash, version)] = true
	}
	for _, r := range before.Runs {
		finished := files.HasResult(filepath.Join(runs, r.Hash, SummaryFile))
		if !own[r.Hash] && finished {
			return fmt.Errorf("%s: holds results of another configuration (%s of other settings or "+
				"inputs): %w", f.dir, r.Label, ErrTaken)
		}
	}
	return nil
}

// start writes the question and the index, and removes results of another question.
func (f *Folder) start() (err error) {
	before := f.index
	if f.index, err = f.indexOf(f.question); err != nil {
		return err
	}
	left := append(slices.Clone(before.Files), IndexFile, QuestionFile, ConfigFile)
	if err := ClearLeft(f.dir, left...); err != nil {
		return err
	}
	question := f.question.toml(f.Store.version)
	asked, err := files.ReadResult(filepath.Join(f.dir, QuestionFile))
	same := slices.EqualFunc(before.Runs, f.index.Runs,
		func(a, b IndexRun) bool { return a.Hash == b.Hash }) || f.question.Runs == nil
	if err == nil && same && bytes.Equal(asked, question) {
		f.index.Files = before.Files
	} else if err := f.clear(before.Files); err != nil {
		return err
	}
	all := []File{{QuestionFile, question}}
	if f.question.Config != nil {
		all = append(all, File{ConfigFile, f.question.Config})
	}
	if _, err := WriteFiles(f.dir, all...); err != nil {
		return err
	}
	return f.writeIndex()
}

// clear removes earlier results and their pictures.
func (f *Folder) clear(before []string) (err error) {
	if before == nil {
		return nil
	}
	return errors.Join(f.removeFiles(append(slices.Clone(before), ConfigFile)), f.clearPictures())
}

func (f *Folder) removeFiles(names []string) (err error) {
	for _, name := range names {
		err = errors.Join(err, ignoreAbsent(os.Remove(filepath.Join(f.dir, filepath.Base(name)))))
	}
	return err
}

func (f *Folder) writeIndex() error {
	return KeptWhenFull(WriteJSON(filepath.Join(f.dir, IndexFile), &f.index))
}

// clearPictures removes the pictures that PicturesCSV names, and that file.
func (f *Folder) clearPictures() error {
	text, err := files.ReadResult(filepath.Join(f.dir, PicturesCSV))
	if err != nil {
		return ignoreAbsent(err)
	}
	rows, _ := files.NewCSVReader(PicturesCSV, bytes.NewReader(text)).ReadAll()
	left := []string{PicturesCSV}
	for _, row := range rows[min(1, len(rows)):] { // below the header
		name := row[len(row)-1]
		left = append(left, name+".png", name+".svg", name+".pdf")
	}
	return f.removeFiles(left)
}

// ignoreAbsent returns err, or nil if the file does not exist.
func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Finished reports whether the folder has results of the question.
func (f *Folder) Finished() bool { return len(f.index.Files) > 0 }

// Name returns the name of the question.
func (f *Folder) Name() string { return f.question.Name }

// Dir returns the result folder.
func (f *Folder) Dir() string { return f.dir }

// Close packs the runs that are stored here and unlocks the folder. It removes a folder that this
// process created if no run finished.
func (f *Folder) Close() error {
	err := error(nil)
	if !f.apart {
		if err = f.Store.Pack(); IsFull(err) {
			err = nil // the runs are kept as they are
		}
		if f.fresh && !f.Finished() {
			f.removeEmpty()
		}
	}
	return errors.Join(err, f.unlock())
}

// removeEmpty removes a folder without a run.
func (f *Folder) removeEmpty() {
	if _, err := os.Stat(filepath.Join(f.Store.Dir(), files.Packed)); err == nil {
		return
	}
	for _, path := range []string{filepath.Join(f.Store.Dir(), LockFile), f.Store.Dir(),
		filepath.Join(f.dir, QuestionFile), filepath.Join(f.dir, ConfigFile),
		filepath.Join(f.dir, IndexFile), f.dir} {
		os.Remove(path) // folders only when they are empty
	}
}

func (f *Folder) unlock() (err error) {
	if f.Store != nil {
		err = f.Store.Close()
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}
