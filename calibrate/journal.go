package calibrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
)

// journal keeps samples on disk while they are measured.
type journal struct {
	path    string
	file    *os.File
	samples *Samples
	done    map[string]bool
}

// openJournal continues the samples at path if they have the same origin, and starts a new file
// otherwise. note tells the user that the run resumes, or where samples of another origin were
// moved.
func openJournal(path string, origin Origin) (j *journal, note string, err error) {
	j = &journal{path: path, samples: &Samples{Origin: origin}, done: map[string]bool{}}
	data, err := files.ReadResult(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, "", err
	default:
		if note, err = j.resume(data); err != nil {
			return nil, "", err
		}
	}
	// Rewrite the file first: this drops a row that an interrupt truncated.
	if err := files.Write(path, j.samples.Encode()); err != nil {
		return nil, "", err
	}
	j.file, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	return j, note, err
}

// resume keeps the samples of an earlier run, or moves them aside if their origin differs.
func (j *journal) resume(data []byte) (note string, err error) {
	old, err := ParseSamples(j.path, wholeLines(data))
	if err != nil {
		return "", fmt.Errorf("cannot resume: %w; move the file away to measure anew", err)
	}
	if why := j.samples.Origin.differs(old.Origin); why != "" {
		aside := j.path + ".old"
		if err := os.Rename(j.path, aside); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s has %s: measuring anew, its samples are now in %s", j.path, why, aside),
			nil
	}
	j.samples.Origin = old.Origin // keeps the date
	j.samples.Records = old.Records
	for _, r := range old.Records {
		j.done[r.Point.Key()] = true
	}
	return fmt.Sprintf("%s keeps %d points of this machine, which are not measured again", j.path,
		len(old.Records)), nil
}

// wholeLines drops an unterminated last line.
func wholeLines(data []byte) []byte {
	for n := len(data); n > 0; n-- {
		if data[n-1] == '\n' {
			return data[:n]
		}
	}
	return nil
}

// add appends a record to the file.
func (j *journal) add(r Record) error {
	for i, s := range r.Samples { // as a reader of the file will see them
		r.Samples[i] = asWritten(s)
	}
	j.samples.Records = append(j.samples.Records, r)
	j.done[r.Point.Key()] = true
	w := files.NewCSVWriter(j.file)
	if err := r.appendRow(w); err != nil {
		return err
	}
	return w.Flush()
}

// sync flushes the file to the drive.
func (j *journal) sync() error { return j.file.Sync() }

func (j *journal) close() error { return errors.Join(j.file.Sync(), j.file.Close()) }

// forget drops the samples of the given probes, also from the closed file, so that the next run
// measures them anew.
func (j *journal) forget(probes []string) error {
	j.samples.Records = slices.DeleteFunc(
		j.samples.Records, func(r Record) bool { return slices.Contains(probes, r.Point.Probe) })
	return files.Write(j.path, j.samples.Encode())
}

// asWritten rounds a sample as the file does.
func asWritten(seconds float64) float64 {
	us, err := strconv.ParseFloat(formatMicro(seconds), 64)
	must(err)
	return us * 1e-6
}
