package papers

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/files"
)

//go:embed claims_kept.csv
var keptCSV string

// keptColumns are the columns of claims_kept.csv: claim, index of the number, change of our model,
// our number and its 95 % interval.
var keptColumns = []string{"claim", "index", "changed", "ours", "low", "high"}

// Changes that are not settings.
const (
	Shorter   = "shorter"   // runs, as for Exchanged
	Exchanged = "exchanged" // Swapped, on shorter runs
)

type keptKey struct {
	changed, claim string
	index          int
}

// Kept judges claims with the numbers embedded in the program, for our model or for our model with
// a change. Claims without such a number are listed without one.
func Kept(claims []Claim, changed string) ([]Outcome, error) {
	kept, err := parseKept("claims_kept.csv", keptCSV)
	if err != nil {
		return nil, err
	}
	return judge(claims, func(v *Outcome, _ *measurement) error {
		if n, ok := kept[keptKey{changed, v.ID, v.Index}]; ok {
			v.settle(n[0], n[1], n[2])
		}
		return nil
	})
}

// Keep writes outcomes of our model, with a change or "", to the file at path. It replaces earlier
// outcomes of the same numbers.
func Keep(path, changed string, outcomes []Outcome) error {
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
			kept[keptKey{changed, v.ID, v.Index}] = [3]float64{*v.Ours, *v.Low, *v.High}
		}
	}
	changes := map[string]bool{}
	for key := range kept {
		changes[key.changed] = true
	}
	all, err := Claims()
	if err != nil {
		return err
	}
	t := run.NewTable(keptColumns...)
	for _, changed := range slices.Sorted(maps.Keys(changes)) {
		for _, c := range all {
			for i := range c.Values {
				if n, ok := kept[keptKey{changed, c.ID, i}]; ok {
					t.Add(c.ID, i, changed, digits(n[0]), digits(n[1]), digits(n[2]))
				}
			}
		}
	}
	return run.WriteFile(path, t.Bytes())
}

// KeptChanges lists the changes that have embedded numbers.
func KeptChanges() ([]string, error) {
	kept, err := parseKept("claims_kept.csv", keptCSV)
	var changes []string
	for key := range kept {
		if strings.Contains(key.changed, "=") && !slices.Contains(changes, key.changed) {
			changes = append(changes, key.changed)
		}
	}
	slices.Sort(changes)
	return changes, err
}

// digits formats more digits than are printed.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

func parseKept(path, text string) (map[keptKey][3]float64, error) {
	in := files.NewCSVReader(path, strings.NewReader(text))
	in.FieldsPerRecord = len(keptColumns)
	rows, err := in.ReadAll()
	if err != nil {
		return nil, err
	}
	kept := map[keptKey][3]float64{}
	for i, row := range rows {
		if i == 0 {
			continue
		}
		var n [3]float64
		index, err := strconv.Atoi(row[1])
		for j := range n {
			if err == nil {
				n[j], err = strconv.ParseFloat(row[3+j], 64)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		kept[keptKey{row[2], row[0], index}] = n
	}
	return kept, nil
}
