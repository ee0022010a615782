package validate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// manifestFile is the last file written to a kept point's folder.
const manifestFile = "point.json"

// manifest names the inputs of a kept live run besides its configuration, and a digest of each of
// its files.
type manifest struct {
	Name    string            `json:"name"`
	Hash    string            `json:"hash"`
	Inputs  config.Inputs     `json:"inputs"`
	Files   map[string]string `json:"files"` // name -> SHA-256
	Device  string            `json:"device,omitempty"`
	Program string            `json:"program,omitempty"` // version of what made it, and its options
}

// readManifest reads the manifest of a point's folder.
func readManifest(dir string) (m manifest, err error) {
	text, err := files.ReadResult(filepath.Join(dir, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, errors.New("no " + manifestFile)
	}
	if err != nil {
		return m, err
	}
	if json.Unmarshal(text, &m) != nil || m.Hash == "" || m.Files[run.SummaryFile] == "" ||
		m.Files[run.ConfigFile] == "" {
		return m, errors.New(manifestFile + " is damaged")
	}
	return m, nil
}

// check compares the folder's files with their digests.
func (m *manifest) check(dir string) error {
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

// write adds the digests of the folder's files and writes the manifest as the last file.
func (m *manifest) write(dir string) error {
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
	return run.WriteJSON(filepath.Join(dir, manifestFile), m)
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
