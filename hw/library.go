package hw

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

//go:embed models/*.toml
var modelFiles embed.FS

// ModelNames lists the built-in models in alphabetical order.
func ModelNames() []string { return names(modelFiles, "models") }

// LoadModel returns a built-in model by name, or reads a HuggingFace
// config.json (or a folder that holds one) or a model description in TOML.
func LoadModel(nameOrPath string) (Model, error) {
	if data, err := modelFiles.ReadFile("models/" + nameOrPath + ".toml"); err == nil {
		return parseModel("models/"+nameOrPath+".toml", data)
	}
	path := nameOrPath
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	data, err := files.ReadText(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !LooksLikePath(nameOrPath):
		return Model{}, unknownName("model", nameOrPath, ModelNames())
	case err != nil:
		return Model{}, fmt.Errorf("model: %w", err)
	case strings.HasSuffix(path, ".json"):
		m, err := parseConfigJSON(path, data)
		if err != nil {
			return m, err
		}
		m.TopP, err = generationTopP(filepath.Dir(path))
		return m, err
	}
	return parseModel(path, data)
}

// generationTopP returns top_p of the generation_config.json in a checkpoint's folder, or 0.
func generationTopP(dir string) (float64, error) {
	path := filepath.Join(dir, "generation_config.json")
	data, err := files.ReadText(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	var g struct {
		TopP float64 `json:"top_p"`
	}
	if err := json.Unmarshal(data, &g); err != nil {
		return 0, jsonError(path, data, err)
	}
	if g.TopP < 0 || g.TopP > 1 {
		return 0, fmt.Errorf("%s: top_p = %g: want 0 to 1", path, g.TopP)
	}
	return g.TopP, nil
}

// parseModel decodes one model description.
func parseModel(file string, data []byte) (Model, error) {
	m, err := parse[Model](file, data)
	if err != nil {
		return Model{}, err
	}
	return *m, nil
}

// names lists the embedded *.toml files of a folder, without the suffix.
func names(files embed.FS, folder string) []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		panic("hw: embedded folder " + folder + " is missing: " + err.Error())
	}
	out := make([]string, 0, len(entries))
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return out
}

// LooksLikePath says whether a text is meant as the path of a model, card or engine, not as a name.
func LooksLikePath(s string) bool {
	return strings.ContainsRune(s, os.PathSeparator) || strings.HasSuffix(s, ".json") ||
		strings.HasSuffix(s, ".toml")
}

// unknownName offers the known names that begin with the given one, else the nearest.
func unknownName(kind, name string, known []string) error {
	if strings.HasPrefix(name, "[") {
		return fmt.Errorf("one %s a configuration; several are an axis of a sweep, [[axis]] with "+
			"grid.%s = "+
			"[...] (sparseserve help sweep)", kind, kind)
	}
	own := "; or a path that ends in .toml"
	if kind == "model" {
		own = "; or the path of a config.json"
	}
	var begin []string
	for _, k := range known {
		if name != "" && strings.HasPrefix(k, strings.ToLower(name)) {
			begin = append(begin, strconv.Quote(k))
		}
	}
	if len(begin) > 0 {
		return fmt.Errorf("unknown %s %q, did you mean %s? known: %s%s", kind, name,
			strings.Join(begin, " or "), strings.Join(known, ", "), own)
	}
	if near := nearest.Name(name, known); near != "" {
		return fmt.Errorf("unknown %s %q, did you mean %q? known: %s%s", kind, name, near,
			strings.Join(known, ", "), own)
	}
	return fmt.Errorf("unknown %s %q; known: %s%s", kind, name, strings.Join(known, ", "), own)
}
