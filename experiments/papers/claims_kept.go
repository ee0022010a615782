package papers

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

//go:embed claims_kept.csv
var keptCSV string

// keptColumns are those of claims_kept.csv: a number of a claim, ours and its 95 % interval.
var keptColumns = []string{"claim", "index", "ours", "low", "high"}

// Kept judges claims from the numbers of ours that the program comes with. Those that it has not
// are listed without a number.
func Kept(claims []Claim) ([]Outcome, error) {
	kept, err := parseKept("claims_kept.csv", keptCSV)
	if err != nil {
		return nil, err
	}
	return judge(claims, func(v *Outcome, _ measurement) error {
		if n, ok := kept[measureKey{v.ID, v.Index}]; ok {
			v.settle(n[0], n[1], n[2])
		}
		return nil
	})
}

// Keep writes outcomes into the file at path, in the place of what it has of the same numbers.
func Keep(path string, outcomes []Outcome) error {
	text, err := files.ReadResult(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	kept, err := parseKept(path, string(text))
	if err != nil {
		return err
	}
	for i := range outcomes {
		if v := &outcomes[i]; v.Measured() {
			kept[measureKey{v.ID, v.Index}] = [3]float64{*v.Ours, *v.Low, *v.High}
		}
	}
	all, err := Claims("")
	if err != nil {
		return err
	}
	t := run.NewTable(keptColumns...)
	for _, c := range all {
		for i := range c.numbers() {
			if n, ok := kept[measureKey{c.ID, i}]; ok {
				t.Add(c.ID, i, digits(n[0]), digits(n[1]), digits(n[2]))
			}
		}
	}
	return run.WriteFile(path, t.Bytes())
}

// digits keeps more digits than are printed.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func parseKept(path, text string) (map[measureKey][3]float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	kept := map[measureKey][3]float64{}
	for i, row := range rows {
		if i == 0 {
			continue
		}
		var n [3]float64
		index, err := strconv.Atoi(row[1])
		for j := range n {
			if err == nil {
				n[j], err = strconv.ParseFloat(row[2+j], 64)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		kept[measureKey{row[0], index}] = n
	}
	return kept, nil
}
