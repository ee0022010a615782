package figures

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	_ "embed"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Accuracy on LongBench as the SparseServe paper prints it (A.1, Table 1), by token budget of
// sparse attention. Nothing here measures accuracy.
//
//go:embed tableA1.csv
var accuracyCSV string

// record is a row of results: a run, a candidate of a goodput search, or a row of a table.
type record struct {
	where string            // file and row, for errors
	cells map[string]string // by column, or by the path of keys in JSON: "ttft_s.mean"
	json  bool              // a key that is missing is 0
}

// readRecords returns the rows of a folder of results.
func readRecords(folder string) ([]record, error) {
	for _, name := range []string{"summary.json", "plan.json"} {
		if !hasFile(folder, name) {
			continue
		}
		path := filepath.Join(folder, name)
		var rows []map[string]any
		if err := files.ReadJSON(path, &rows); err != nil {
			return nil, err
		}
		out := make([]record, len(rows))
		for i, row := range rows {
			out[i] = record{fmt.Sprintf("%s: row %d", path, i+1), map[string]string{}, true}
			out[i].flatten("", row)
		}
		return out, nil
	}
	t, err := readTable(folder)
	if err != nil {
		return nil, err
	}
	return t.records(), nil
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

func (t *table) records() []record {
	out := make([]record, len(t.rows))
	for i, row := range t.rows {
		out[i] = record{fmt.Sprintf("%s: row %d", t.path, i+1), map[string]string{}, false}
		for j, column := range t.header {
			out[i].cells[column] = cellText(row[j])
		}
	}
	return out
}

// accuracyRecords has a row for each data set and budget of tableA1.csv.
func accuracyRecords() ([]record, error) {
	t, err := parseTable("tableA1.csv", strings.NewReader(accuracyCSV))
	if err != nil {
		return nil, err
	}
	var out []record
	for _, r := range t.records() {
		for _, budget := range t.header[3:] {
			out = append(out, record{r.where, map[string]string{"model": r.cells["model"],
				"full": r.cells["full"], "budget": budget, "accuracy": r.cells[budget]}, false})
		}
	}
	return out, nil
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
func (r *record) has(where map[string]any) bool {
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
