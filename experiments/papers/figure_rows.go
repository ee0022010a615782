package papers

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/capacity"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

// Accuracy on LongBench as the SparseServe paper prints it (A.1, Table 1), by token budget of
// sparse attention. Nothing here measures accuracy.
//
//go:embed tableA1.csv
var accuracyCSV []byte

// record is a row of results: a run, a candidate of a goodput search, or a row of a table.
type record struct {
	where string            // file and row, for errors
	cells map[string]string // by column, or by the path of keys in JSON: "ttft_s.mean"
	json  bool              // a key that is missing is 0
}

// readRecords returns the rows of a folder of results; fs.ErrNotExist without results.
func readRecords(folder string) ([]record, error) {
	for _, name := range []string{run.SummaryFile, capacity.PlanFile} {
		path := filepath.Join(folder, name)
		var rows []map[string]any
		err := files.ReadJSON(path, &rows)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		out := make([]record, len(rows))
		for i, row := range rows {
			out[i] = record{fmt.Sprintf("%s: row %d", path, i+1), map[string]string{}, true}
			out[i].flatten("", row)
		}
		return out, err
	}
	path := filepath.Join(folder, tableFile)
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	_, out, err := parseRecords(path, text)
	return out, err
}

// flatten adds a value of JSON to the cells. The items of a list share one, with spaces between.
func (r *record) flatten(path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r.flatten(strings.TrimPrefix(path+"."+key, "."), v[key])
		}
	case []any:
		for _, item := range v {
			r.flatten(path, item)
		}
	case nil:
	default:
		r.cells[path] = strings.TrimSpace(r.cells[path] + " " + cellText(v))
	}
}

// cellText is a value as a cell has it. Equal numbers have equal texts.
func cellText(value any) string {
	text := fmt.Sprint(value)
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(n, 'g', -1, 64)
	}
	return text
}

// parseRecords reads a table that has a row.
func parseRecords(path string, text []byte) (header []string, out []record, err error) {
	all, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
	if err == nil && len(all) < 2 {
		err = fmt.Errorf("%s: no row", path)
	}
	if err != nil {
		return nil, nil, err
	}
	for i, row := range all[1:] {
		r := record{fmt.Sprintf("%s: row %d", path, i+1), map[string]string{}, false}
		for j, column := range all[0] {
			r.cells[column] = cellText(row[j])
		}
		out = append(out, r)
	}
	return all[0], out, nil
}

// accuracyRecords has a row for each data set and budget of tableA1.csv.
func accuracyRecords() (out []record, err error) {
	header, rows, err := parseRecords("tableA1.csv", accuracyCSV)
	for _, r := range rows {
		for _, budget := range header[3:] {
			out = append(out, record{r.where, map[string]string{"model": r.cells["model"],
				"full": r.cells["full"], "budget": budget, "accuracy": r.cells[budget]}, false})
		}
	}
	return out, err
}

// number returns the sum of some columns.
func (r *record) number(columns ...string) (float64, error) {
	sum := 0.0
	for _, column := range columns {
		text, ok := r.cells[column]
		switch {
		case !ok && r.json:
			continue
		case !ok:
			return 0, fmt.Errorf("%s: no column %q", r.where, column)
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %s = %q: want a number", r.where, column, text)
		}
		sum += v
	}
	return sum, nil
}

// texts returns some columns with spaces between them; one that the row lacks is empty.
func (r *record) texts(columns string) string {
	var all []string
	for _, column := range strings.Fields(columns) {
		all = append(all, r.cells[column])
	}
	return strings.Join(all, " ")
}

// has is true where the row has, for each key, the value or one of the values.
func (r *record) has(where filter) bool {
	for key, want := range where {
		values, several := want.([]any)
		if !several {
			values = []any{want}
		}
		if !slices.ContainsFunc(values, func(v any) bool { return cellText(v) == r.cells[key] }) {
			return false
		}
	}
	return true
}

// studyCaption says what a study was made with: the title of its study.toml, a comment in the first
// line, and the keys that a reader asks for; "" without the file.
func studyCaption(folder string) (string, error) {
	var study struct {
		Model    string   `toml:"model"`
		GPU      string   `toml:"gpu"`
		Requests int      `toml:"requests"`
		Seeds    []uint64 `toml:"seeds"`
	}
	path := filepath.Join(folder, studyFile)
	text, err := files.ReadResult(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		err = files.DecodeTOML(path, string(text), &study)
	}
	if err != nil {
		return "", err
	}
	var words []string
	first, _, _ := strings.Cut(string(text), "\n")
	if title, titled := strings.CutPrefix(first, "# "); titled {
		words = append(words, strings.TrimSuffix(title, "."))
	}
	words = append(words, ModelName(study.Model), study.GPU)
	if study.Requests > 0 {
		words = append(words, strconv.Itoa(study.Requests)+" requests")
	}
	if len(study.Seeds) > 0 {
		seeds := strings.ReplaceAll(fmt.Sprint(study.Seeds), " ", ", ")
		words = append(words, "seeds "+strings.Trim(seeds, "[]"))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", "), nil
}

// recordsCaption says what rows are of: models, cards, requests and seeds.
func recordsCaption(rows []record) string {
	var words []string
	for _, of := range []struct{ keys, text string }{{"model", "%s"}, {"gpu", "%s"},
		{"requests", "%s requests"}, {"seed seeds", "seeds %s"}} {
		var values []string
		for i := range rows {
			values = append(values, strings.Fields(rows[i].texts(of.keys))...)
		}
		slices.Sort(values)
		for i, v := range values {
			values[i] = ModelName(v)
		}
		if values = slices.Compact(values); len(values) > 0 {
			words = append(words, fmt.Sprintf(of.text, strings.Join(values, ", ")))
		}
	}
	return strings.Join(words, ", ")
}
