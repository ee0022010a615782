package llm

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/files"
)

// catalogueCSV has the shapes of models that people serve, a model a row. Its columns are the keys
// of Model, the id on the hub of the checkpoint whose config.json has the shape, and the published
// number of parameters. KV has the bytes that a server gives it without --kv-cache-dtype: FP8 for
// models with an indexer (vllm-project/vllm, pull request 25988), else 16 bits.
//
//go:embed catalogue.csv
var catalogueCSV string

// refusedCSV has ids on the hub of models that people serve and Model does not represent, with the
// field of their config.json that changes the arithmetic.
//
//go:embed refused.csv
var refusedCSV string

// rowsOf returns the rows of an embedded CSV, header first.
func rowsOf(file, text string) [][]string {
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		panic("llm: " + file + ": " + err.Error()) // a test reads it
	}
	return rows
}

// Catalogue returns the built-in models in alphabetical order.
var Catalogue = sync.OnceValue(func() (models []Model) {
	rows := rowsOf("catalogue.csv", catalogueCSV)
	for _, row := range rows[1:] {
		text := ""
		for i, value := range row {
			switch key := rows[0][i]; {
			case value == "" || key == "billions":
			case key == "hub":
				text += fmt.Sprintf("source = %q\n", "config.json of "+value)
			case key == "name" || key == "window_pattern" || key == "tokenizer" || key == "weight_type":
				text += fmt.Sprintf("%s = %q\n", key, value)
			default:
				text += key + " = " + value + "\n"
			}
		}
		m, err := parseModel("catalogue.csv, "+row[0], text)
		if err != nil {
			panic("llm: " + err.Error()) // a test reads the catalogue
		}
		models = append(models, m)
	}
	return models
})

// Names returns the names of the built-in models in alphabetical order.
func Names() (all []string) {
	for _, m := range Catalogue() {
		all = append(all, m.Name)
	}
	return all
}

// Load returns a built-in model by name or by its id on the hub, or reads a Hugging Face
// config.json (or a folder with one) or a TOML description of a model.
func Load(nameOrPath string) (Model, error) {
	known := NameOf(nameOrPath)
	catalogue := Catalogue()
	if i := slices.IndexFunc(catalogue, func(m Model) bool { return m.Name == known }); i >= 0 {
		return catalogue[i], nil
	}
	path := nameOrPath
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	data, err := files.ReadText(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !builtin.LooksLikePath(nameOrPath):
		names := Names()
		return Model{}, builtin.Unknown("model", nameOrPath, names, fmt.Sprintf(
			"the %d of sparseserve list models, nearest %s", len(names),
			strings.Join(alikeIDs(nameOrPath), ", ")), "the path of a config.json")
	case errors.Is(err, fs.ErrNotExist) && HubName(nameOrPath):
		for _, row := range rowsOf("refused.csv", refusedCSV)[1:] {
			if builtin.Fold(row[0]) == builtin.Fold(nameOrPath) {
				return Model{}, fmt.Errorf("model %s is not modelled: %s; %s", row[0], row[1], supported)
			}
		}
		return Model{}, fmt.Errorf("neither a file nor in the catalogue: save "+
			"https://huggingface.co/%s/resolve/main/config.json and name its path; nearest in the "+
			"catalogue are %s (sparseserve list models)", nameOrPath,
			strings.Join(alikeIDs(nameOrPath), ", "))
	case err != nil:
		return Model{}, fmt.Errorf("model: %w", err)
	case strings.HasSuffix(path, ".json"):
		m, err := ParseConfig(path, data)
		if err != nil {
			return m, err
		}
		m.TopP, err = generationTopP(filepath.Dir(path))
		return m, err
	}
	return parseModel(path, string(data))
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
	if err := files.ParseJSON(path, data, &g); err != nil {
		return 0, err
	}
	if g.TopP < 0 || g.TopP > 1 {
		return 0, fmt.Errorf("%s: top_p = %g: want 0 to 1", path, g.TopP)
	}
	return g.TopP, nil
}

// parseModel decodes one model description.
func parseModel(file, text string) (Model, error) {
	m, err := builtin.Parse[Model](file, text)
	if err != nil {
		return Model{}, err
	}
	return *m, nil
}

// hubName is OWNER/MODEL.
var hubName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// HubName reports whether a text may be the name of a model on the Hugging Face hub.
func HubName(s string) bool {
	return hubName.MatchString(s) && !strings.HasSuffix(s, ".json") && !strings.HasSuffix(s, ".toml")
}

// hubID matches the id of a model on the Hugging Face hub in its source.
var hubID = regexp.MustCompile(`config\.json of ([\w.-]+/[\w.-]*\w)`)

// NameOf returns the built-in model that a name as people type it means (Llama-3.1-8B), or that
// has this id on the hub (Qwen/Qwen3-14B), or the name. A file or folder of the name comes first.
func NameOf(name string) string {
	if slices.Contains(Names(), name) {
		return name
	}
	if _, err := os.Stat(name); err == nil || !HubName(name) {
		return builtin.Alike(name, Names())
	}
	for _, m := range Catalogue() {
		of := hubID.FindStringSubmatch(m.Source)
		if of != nil && builtin.Fold(of[1]) == builtin.Fold(name) {
			return m.Name
		}
	}
	return name
}

// Parts of a folded or plain id that tell what a model is like.
var (
	familyOf = regexp.MustCompile(`^[a-z]*`)
	sizeOf   = regexp.MustCompile(`(?:^|[^a-z0-9.])([0-9.]+)b`) // billions of parameters
)

// alikeIDs returns the three ids on the hub that are most like an id: of its family and within a
// quarter of its size, then by how they begin, by size and by length.
func alikeIDs(id string) (near []string) {
	name := builtin.Fold(path.Base(id))
	size := func(id string) (billions float64) {
		if of := sizeOf.FindStringSubmatch(strings.ToLower(path.Base(id))); of != nil {
			billions, _ = strconv.ParseFloat(of[1], 64)
		}
		return billions
	}
	differs := func(other string) (by [4]float64) {
		b, begins := builtin.Fold(path.Base(other)), 0
		for begins < min(len(name), len(b)) && name[begins] == b[begins] {
			begins++
		}
		times := math.Abs(math.Log(max(size(id), 0.01) / max(size(other), 0.01)))
		if familyOf.FindString(name) != familyOf.FindString(b) || times > math.Log(1.25) {
			by[0] = 1
		}
		by[1], by[2], by[3] = -float64(begins), times, float64(max(len(name), len(b)))
		return by
	}
	for _, m := range Catalogue() {
		if of := hubID.FindStringSubmatch(m.Source); of != nil {
			near = append(near, of[1])
		}
	}
	slices.SortStableFunc(near, func(a, b string) int {
		x, y := differs(a), differs(b)
		return slices.Compare(x[:], y[:])
	})
	return near[:3]
}
