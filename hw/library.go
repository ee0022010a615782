package hw

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/nearest"
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
		panic("hw: " + file + ": " + err.Error()) // a test reads it
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
			panic("hw: " + err.Error()) // a test reads the catalogue
		}
		models = append(models, m)
	}
	return models
})

// ModelNames returns the names of the built-in models in alphabetical order.
func ModelNames() (all []string) {
	for _, m := range Catalogue() {
		all = append(all, m.Name)
	}
	return all
}

// LoadModel returns a built-in model by name or by its id on the hub, or reads a Hugging Face
// config.json (or a folder with one) or a TOML description of a model.
func LoadModel(nameOrPath string) (Model, error) {
	known := ModelName(nameOrPath)
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
	case errors.Is(err, fs.ErrNotExist) && !LooksLikePath(nameOrPath):
		return Model{}, unknownName("model", nameOrPath, ModelNames())
	case errors.Is(err, fs.ErrNotExist) && HubName(nameOrPath):
		for _, row := range rowsOf("refused.csv", refusedCSV)[1:] {
			if fold(row[0]) == fold(nameOrPath) {
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
		m, err := parseConfigJSON(path, data)
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
	m, err := parse[Model](file, text)
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

// digitRuns matches the runs of digits of a name, product its first letters and digits. They
// separate products with similar names: b200 and h200, qwen3-8b and qwen2-7b.
var (
	digitRuns = regexp.MustCompile(`[0-9]+`)
	product   = regexp.MustCompile(`^[a-z]*-?[0-9]*`)
)

// otherProduct reports whether a name similar to a known one denotes another product.
func otherProduct(kind, name, known string) bool {
	name = strings.ToLower(name)
	return !slices.Equal(digitRuns.FindAllString(name, -1), digitRuns.FindAllString(known, -1)) ||
		kind == "gpu" && product.FindString(name) != product.FindString(known)
}

// cutsNumber reports whether name is a prefix of known that ends within a number, as h20 of h200.
func cutsNumber(name, known string) bool {
	const digits = "0123456789"
	return len(known) > len(name) && strings.ContainsRune(digits, rune(known[len(name)])) &&
		strings.ContainsRune(digits, rune(known[len(name)-1]))
}

// unknownName returns an error that suggests the known names that begin with name, or else the
// nearest name.
func unknownName(kind, name string, known []string) error {
	if strings.HasPrefix(name, "[") || strings.Contains(name, ",") {
		return fmt.Errorf("one %s a configuration; several are an axis of a sweep, [[axis]] with "+
			"grid.%s = "+
			"[...] (sparseserve help sweep)", kind, kind)
	}
	own := "; or a path that ends in .toml"
	switch kind {
	case "model":
		own = "; or the path of a config.json"
	case "gpu":
		own = "; or a card file of your own, CARD.toml (docs/extending.md shows how to make one)"
	}
	all := strings.Join(known, ", ")
	if kind == "model" {
		all = fmt.Sprintf("the %d of sparseserve list models, nearest %s", len(known),
			strings.Join(alikeIDs(name), ", "))
	}
	var begin []string
	for _, k := range known {
		if name != "" && strings.HasPrefix(k, strings.ToLower(name)) && !cutsNumber(name, k) {
			begin = append(begin, strconv.Quote(k))
		}
	}
	if len(begin) > 0 {
		return fmt.Errorf("unknown %s %q, did you mean %s? known: %s%s", kind, name,
			strings.Join(begin, " or "), all, own)
	}
	if near := nearest.Name(name, known); near != "" && !otherProduct(kind, name, near) {
		return fmt.Errorf("unknown %s %q, did you mean %q? known: %s%s", kind, name, near, all,
			own)
	}
	return fmt.Errorf("unknown %s %q; known: %s%s", kind, name, all, own)
}

// shortCards are the cards that short names most often mean.
var shortCards = map[string]string{"a100": "a100-80gb", "h100": "h100-80gb",
	"h100sxm": "h100-80gb", "gh200": "gh200-96gb", "4090": "rtx-4090", "5090": "rtx-5090",
	"910b": "ascend-910b", "910c": "ascend-910c"}

// hubID matches the id of a model on the Hugging Face hub in its source. notSized matches what
// people write differently in a name, and the parts of an id that change no size.
var (
	hubID    = regexp.MustCompile(`config\.json of ([\w.-]+/[\w.-]*\w)`)
	notSized = regexp.MustCompile(`\bmeta-|-(instruct|hf|it|base|chat)\b|[-_ ]`)
)

func fold(name string) string { return notSized.ReplaceAllString(strings.ToLower(name), "") }

// alike returns the known name that differs from name only in spelling, or name.
func alike(name string, known []string) string {
	if i := slices.IndexFunc(known, func(k string) bool { return fold(k) == fold(name) }); i >= 0 {
		return known[i]
	}
	return name
}

// CardName returns the built-in card that a name as people type it means (h100, H200), or the name.
func CardName(name string) string {
	if card := shortCards[fold(name)]; card != "" {
		return card
	}
	return alike(name, CardNames())
}

// ModelName returns the built-in model that a name as people type it means (Llama-3.1-8B), or that
// has this id on the hub (Qwen/Qwen3-14B), or the name. A file or folder of the name comes first.
func ModelName(name string) string {
	if slices.Contains(ModelNames(), name) {
		return name
	}
	if _, err := os.Stat(name); err == nil || !HubName(name) {
		return alike(name, ModelNames())
	}
	for _, m := range Catalogue() {
		if of := hubID.FindStringSubmatch(m.Source); of != nil && fold(of[1]) == fold(name) {
			return m.Name
		}
	}
	return name
}

// alikeIDs returns the three ids on the hub that begin most like an id, and then are as long.
func alikeIDs(id string) (near []string) {
	differs := func(other string) (n int) {
		a, b := fold(path.Base(id)), fold(path.Base(other))
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return max(len(a), len(b)) - 1000*n
	}
	for _, m := range Catalogue() {
		if of := hubID.FindStringSubmatch(m.Source); of != nil {
			near = append(near, of[1])
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return differs(a) - differs(b) })
	return near[:3]
}
