package papers

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Accuracy on LongBench as the SparseServe paper prints it (A.1, Table 1), by token budget of
// sparse attention. Nothing here measures accuracy.
//
//go:embed tableA1.csv
var accuracyCSV []byte

// accuracyRecords returns a row for each data set and budget of tableA1.csv.
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

// studyCaption describes the settings of a study: the title of its study.toml (a comment in the
// first line) and the main keys; "" without the file.
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

// recordsCaption lists the models, cards, requests and seeds of rows.
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
