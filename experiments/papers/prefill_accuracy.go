package papers

import _ "embed"

//go:embed prefill_accuracy.toml
var prefillAccuracyTOML string

// Accuracy is the content of prefill_accuracy.toml, from the MInference paper.
type Accuracy struct {
	Tasks  map[string][]string // columns of a benchmark's table
	Scores []Scores
}

// Scores are the results of one prefill method in one table, %.
type Scores struct {
	Where, Benchmark, Model, Variant string
	Prefill                          string // value of prefill.attention
	Values                           []float64
}

// PrefillAccuracy returns the accuracy that the MInference paper reports.
func PrefillAccuracy() *Accuracy {
	var a Accuracy
	decode("prefill_accuracy.toml", prefillAccuracyTOML, &a)
	return &a
}

// Mean returns the mean of the scores.
func (s *Scores) Mean() float64 { return mean(s.Values) }
