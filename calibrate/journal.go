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

// journal keeps samples on disk while they are measured. The file is written anew after each probe.
type journal struct {
	path    string
	samples *Samples
	done    map[string]bool
}

// openJournal continues the samples at path if they have the same origin, and starts a new file
// otherwise. note tells the user that the run resumes, or where samples of another origin were
// moved.
func openJournal(path string, origin Origin) (j *journal, note string, err error) {
	j = &journal{path: path, samples: &Samples{Origin: origin}, done: map[string]bool{}}
	data, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, "", j.save()
	}
	if err != nil {
		return nil, "", err
	}
	old, err := ParseSamples(path, data)
	if err != nil {
		return nil, "", fmt.Errorf("cannot resume: %w; move the file away to measure anew", err)
	}
	if why := origin.differs(old.Origin); why != "" {
		aside := path + ".old"
		return j, fmt.Sprintf("%s has %s: measuring anew, its samples are now in %s", path, why, aside),
			os.Rename(path, aside)
	}
	j.samples = old // keeps the date
	for _, r := range old.Records {
		j.done[r.Point.Key()] = true
	}
	return j, fmt.Sprintf("%s keeps %d points of this machine, which are not measured again", path,
		len(old.Records)), nil
}

// add appends a record, with its samples as a reader of the file will see them.
func (j *journal) add(r Record) {
	for i, s := range r.Samples {
		r.Samples[i] = asWritten(s)
	}
	j.samples.Records = append(j.samples.Records, r)
}

func (j *journal) save() error { return files.Write(j.path, j.samples.Encode()) }

// forget drops the samples of the given probes, so that the next run measures them anew.
func (j *journal) forget(probes failures) {
	j.samples.Records = slices.DeleteFunc(
		j.samples.Records, func(r Record) bool { return probes[r.Point.Probe] != nil })
}

// asWritten rounds a sample as the file does.
func asWritten(seconds float64) float64 {
	us, err := strconv.ParseFloat(formatMicro(seconds), 64)
	must(err)
	return us * 1e-6
}
