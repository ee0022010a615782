package run

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/sim"
)

// ManifestFile is written last into a kept point's folder.
const ManifestFile = "point.json"

// Manifest says what a kept point depends on besides its configuration, and has a digest of
// each of its files.
type Manifest struct {
	Name    string            `json:"name"`
	Hash    string            `json:"hash"`
	Inputs  config.Inputs     `json:"inputs"`
	Files   map[string]string `json:"files"`             // name -> SHA-256
	Device  string            `json:"device,omitempty"`  // of a live run
	Program string            `json:"program,omitempty"` // where the store has points of several
}

// ReadManifest reads that of a point's folder.
func ReadManifest(dir string) (m Manifest, err error) {
	text, err := files.ReadResult(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, errors.New("no " + ManifestFile)
	}
	if err != nil {
		return m, err
	}
	if json.Unmarshal(text, &m) != nil || m.Hash == "" || m.Files[SummaryFile] == "" ||
		m.Files[ConfigFile] == "" {
		return m, errors.New(ManifestFile + " is damaged")
	}
	return m, nil
}

// check compares the folder's files with their digests.
func (m *Manifest) check(dir string) error {
	for name, want := range m.Files {
		got, err := digestFile(filepath.Join(dir, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) {
			return errors.New("no " + name)
		}
		if err != nil {
			return err
		}
		if got != want {
			return errors.New(name + " is damaged")
		}
	}
	return nil
}

// write notes the digests of the folder's files and becomes the last of them.
func (m *Manifest) write(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	m.Files = map[string]string{}
	for _, e := range entries {
		if m.Files[e.Name()], err = digestFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(filepath.Join(dir, ManifestFile), append(text, '\n'))
}

// ReadSummary reads the summary of a point's folder.
func ReadSummary(dir string) (sum sim.Summary, err error) {
	path := filepath.Join(dir, SummaryFile)
	return sum, files.ReadJSON(path, &sum)
}

func digestFile(path string) (string, error) {
	f, err := files.OpenResult(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// digestOf is a digest of texts, delimited by their lengths.
func digestOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d %s\n", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
