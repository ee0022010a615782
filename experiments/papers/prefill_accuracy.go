package papers

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

//go:embed prefill_accuracy.csv
var prefillAccuracyCSV string

// Scores are the results of one prefill method in the MInference paper's tables: reference data
// that no run here measures.
type Scores struct {
	Where     string  `json:"where"` // in the MInference paper
	Benchmark string  `json:"benchmark"`
	Model     string  `json:"model"`
	Prefill   string  `json:"prefill"` // value of prefill.attention
	Variant   string  `json:"variant,omitempty"`
	Tasks     []Score `json:"tasks"`
	Mean      float64 `json:"mean"`
}

// Score is one column of a table, %.
type Score struct {
	Task  string  `json:"task"`
	Value float64 `json:"value"`
}

// tasks are the columns of the tables.
var tasks = map[string][]string{
	"InfiniteBench": {"En.Sum", "En.QA", "En.MC", "En.Dia", "Zh.QA", "Code.Debug", "Math.Find",
		"Retr.PassKey", "Retr.Number", "Retr.KV"},
	"RULER": {"4K", "8K", "16K", "32K", "64K", "128K"},
}

// PrefillAccuracy lists Tables 2 to 5 of the MInference paper. It panics if the built-in table is
// malformed.
func PrefillAccuracy() []Scores {
	rows, err := csv.NewReader(strings.NewReader(prefillAccuracyCSV)).ReadAll()
	if err != nil {
		panic(fmt.Sprintf("prefill_accuracy.csv: %v", err))
	}
	var all []Scores
	for _, row := range rows[1:] {
		s := Scores{Where: row[0], Benchmark: row[1], Model: row[2], Prefill: row[3], Variant: row[4]}
		names, values := tasks[s.Benchmark], strings.Fields(row[5])
		if len(names) != len(values) {
			panic(fmt.Sprintf("prefill_accuracy.csv: %v: want %d scores", row, len(names)))
		}
		for i, text := range values {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				panic(fmt.Sprintf("prefill_accuracy.csv: %v: %v", row, err))
			}
			s.Tasks = append(s.Tasks, Score{names[i], v})
			s.Mean += v / float64(len(values))
		}
		all = append(all, s)
	}
	return all
}
