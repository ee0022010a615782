package traces

import (
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
)

func TestDefaultSpecIsValid(t *testing.T) {
	s := DefaultSpec()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if len(s.Datasets) != 10 {
		t.Errorf("%d datasets, want the paper's ten", len(s.Datasets))
	}
	s.Datasets[0] = "changed"
	if DefaultSpec().Datasets[0] == "changed" {
		t.Error("two defaults share their datasets")
	}
}

func TestValidateNamesKeys(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		key    string // that the error names; "" is valid
	}{
		"file's own rate":   {func(s *Spec) { s.Rate, s.Arrivals, s.Trace = 0, "trace", "f.csv" }, ""},
		"no requests":       {func(s *Spec) { s.Requests = 0 }, "requests"},
		"negative requests": {func(s *Spec) { s.Requests = -3 }, "requests"},
		"no trace":          {func(s *Spec) { s.Trace = "" }, "trace"},
		"no datasets":       {func(s *Spec) { s.Datasets = nil }, "datasets"},
		"alias":             {func(s *Spec) { s.Datasets = []string{"multifieldqa"} }, ""},
		"dataset slip":      {func(s *Spec) { s.Datasets = []string{"qaspar"} }, "datasets"},
		"dataset hint":      {func(s *Spec) { s.Datasets = []string{"govreport"} }, "datasets"},
		"dataset twice": {
			func(s *Spec) { s.Datasets = []string{"multifieldqa_en", "multifieldqa"} }, "datasets"},
		"arrivals":          {func(s *Spec) { s.Arrivals = "poison" }, "arrivals"},
		"mix has no times":  {func(s *Spec) { s.Arrivals = "trace" }, "arrivals"},
		"format of the mix": {func(s *Spec) { s.Format = "azure" }, "format"},
		"format":            {func(s *Spec) { s.Trace, s.Format = "f.csv", "azur" }, "format"},
		"tokenizer":         {func(s *Spec) { s.Tokenizer = "llama4" }, "tokenizer"},
		"output":            {func(s *Spec) { s.Output = "" }, "output"},
		"synthetic": {
			func(s *Spec) {
				s.Trace, s.PromptLengths, s.OutputLengths = "synthetic", "fixed(9)", "zipf(1, 9)"
			}, ""},
		"no prompt lengths": {func(s *Spec) { s.Trace = "synthetic" }, "trace"},
		"no output lengths": {
			func(s *Spec) { s.Trace, s.PromptLengths = "synthetic", "fixed(9)" }, "prompt_lengths"},
		"no such lengths": {
			func(s *Spec) {
				s.Trace, s.PromptLengths, s.OutputLengths = "synthetic", "fixd(9)",
					"fixed(9)"
			}, "prompt_lengths"},
		"synthetic times": {func(s *Spec) {
			s.Trace, s.Arrivals, s.PromptLengths, s.OutputLengths = "synthetic", "trace", "fixed(9)",
				"fixed(9)"
		}, "arrivals"},
		"clients":    {func(s *Spec) { s.Arrivals, s.Rate, s.Concurrency = "closed", 0, 4 }, ""},
		"no clients": {func(s *Spec) { s.Arrivals, s.Rate = "closed", 0 }, "arrivals"},
		"endless clients": {
			func(s *Spec) { s.Arrivals, s.Rate, s.Concurrency, s.Requests = "closed", 0, 4, 0 }, "requests"},
		"stages to the end": {
			func(s *Spec) { s.Rate, s.Stages, s.Requests = 0, [][]float64{{60, 1}}, 0 }, ""},
	} {
		s := DefaultSpec()
		c.change(&s)
		err := s.Validate()
		if c.key == "" && err != nil || c.key != "" && (err == nil ||
			!strings.Contains(err.Error(), "."+c.key+" = ")) {
			t.Errorf("%s: %v, want %q", name, err, c.key)
		}
		if err != nil {
			if w, openErr := Open(s, 1); openErr == nil || w != nil {
				t.Errorf("%s: Open accepts it", name)
			}
		}
	}
}

func TestSpecKeys(t *testing.T) {
	s := DefaultSpec()
	meta, err := toml.Decode(`
trace = "f.csv"
format = "csv"
tokenizer = "llama3"
arrivals = "gamma"
burstiness = 2.0
speed = 3.0
rate = 0.5
requests = 7
output_scale = 0.5
prompt_lengths = "fixed(7)"
output_lengths = "zipf(1, 9)"
stages = [[60, 1], [30, 2.5]]
concurrency = 4
think_s = 1.5
[sessions]
count = 3
[longbench]
datasets = ["qasper"]
output = "chat"
`, &s)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatal(err, meta.Undecoded())
	}
	want := Spec{
		Trace: "f.csv", Format: "csv", Tokenizer: "llama3",
		Arrivals: "gamma", Rate: 0.5, Burstiness: 2, Speed: 3, Requests: 7,
		OutputScale: 0.5, PromptLengths: "fixed(7)", OutputLengths: "zipf(1, 9)",
		Stages: [][]float64{{60, 1}, {30, 2.5}}, Concurrency: 4, ThinkS: 1.5,
		SessionSpec:   SessionSpec{Sessions: 3},
		LongBenchSpec: LongBenchSpec{Datasets: []string{"qasper"}, Output: "chat"},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}
