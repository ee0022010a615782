package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// Inputs are digests of the files that a point's configuration names.
type Inputs struct {
	Model string `json:"model"`
	GPU   string `json:"gpu"`
	Trace string `json:"trace,omitempty"` // empty where no file has it
	// Selections identifies the recorded selections that are replayed.
	Selections string `json:"selections,omitempty"`
	Patterns   string `json:"patterns,omitempty"` // of sparse prefill, from a file
}

// Hasher identifies runs by their configuration and the inputs that it names: model, hardware
// profile and trace. It reads each input once. It is safe for concurrent use.
type Hasher struct {
	mu      sync.Mutex
	digests map[string]string
	texts   map[any][]byte // see encoder
}

// NewHasher returns a hasher that has read nothing.
func NewHasher() *Hasher { return &Hasher{digests: map[string]string{}, texts: map[any][]byte{}} }

// Hash returns the hash of a run. Equal configurations have equal hashes, however they were
// composed.
func (h *Hasher) Hash(p *Point) (string, error) {
	text, in, err := h.Identity(p)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(text)
	fmt.Fprintf(sum, "\nmodel %s\ngpu %s\ntrace %s\n", in.Model, in.GPU, in.Trace)
	if in.Selections != "" {
		fmt.Fprintf(sum, "selections %s\n", in.Selections)
	}
	if in.Patterns != "" {
		fmt.Fprintf(sum, "patterns %s\n", in.Patterns)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// Identity returns everything that a run's result depends on within a version of the model.
func (h *Hasher) Identity(p *Point) (config []byte, in Inputs, err error) {
	h.mu.Lock()
	config, err = encode(h.texts, *p)
	h.mu.Unlock()
	if err != nil {
		return nil, in, err
	}
	digest := func(into *string, key string, write func(io.Writer) error) {
		if err == nil {
			*into, err = h.digest(key, write)
		}
	}
	digest(&in.Model, "model "+p.Model, func(w io.Writer) error {
		m, err := llm.Load(p.Model)
		if err != nil {
			return err
		}
		m.Source = "" // another source of the same shape makes no other run
		return json.NewEncoder(w).Encode(m)
	})
	digest(&in.GPU, p.machineKey(), func(w io.Writer) error {
		g, err := p.Machine()
		if err != nil {
			return err
		}
		text, err := tomlfile.Encode(g)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	})
	ofFiles := func(into *string, kind, path string) {
		digest(into, kind+path, func(w io.Writer) error { return copyFiles(w, path) })
	}
	if p.Workload.FromFile() {
		ofFiles(&in.Trace, "trace ", p.Workload.Trace)
	}
	if recorded := p.System.Selection.Recording; recorded != "" && err == nil {
		ofFiles(&in.Selections, "selections ", recorded)
		if errors.Is(err, fs.ErrNotExist) {
			err = &KeyError{Key: "selection.recording", Value: quote(recorded), Reason: "no such file"}
		}
	}
	if path, ok := PatternFile(&p.System); ok {
		ofFiles(&in.Patterns, "patterns ", path)
	}
	return config, in, err
}

// digest returns a short digest of the output of write, cached under key.
func (h *Hasher) digest(key string, write func(io.Writer) error) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d, ok := h.digests[key]; ok {
		return d, nil
	}
	sum := sha256.New()
	if err := write(sum); err != nil {
		return "", err
	}
	d := hex.EncodeToString(sum.Sum(nil)[:8])
	h.digests[key] = d
	return d, nil
}

// copyFiles writes a file, or the names and files of a folder in the order of
// their names.
func copyFiles(w io.Writer, root string) error {
	if files.Once(root) {
		f, err := files.Again(root)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\n", filepath.ToSlash(rel))
		f, err := files.OpenResult(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}
