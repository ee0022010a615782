package traces

import (
	"math"
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

func TestValidateNamesKeyAndValue(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		want   string // "" is valid
	}{
		"negative rate": {func(s *Spec) { s.Rate = -1 }, "workload.rate = -1: must be above 0"},
		"NaN rate": {func(s *Spec) { s.Rate = math.NaN() }, "workload.rate = NaN: must be a " +
			"finite number"},
		"infinite rate": {func(s *Spec) { s.Rate = math.Inf(1) }, "workload.rate = +Inf"},
		"zero rate":     {func(s *Spec) { s.Rate = 0 }, "workload.rate = 0"},
		"tiny rate": {func(s *Spec) { s.Rate = 1e-300 },
			"workload.rate = 1e-300: must be between"},
		"file's own rate": {func(s *Spec) { s.Rate, s.Arrivals, s.Trace = 0, "trace", "f.csv" }, ""},
		"NaN rate unused": {func(s *Spec) {
			s.Rate, s.Arrivals, s.Trace = math.NaN(), "trace",
				"f.csv"
		}, "workload.rate = NaN"},
		"fewer than none": {func(s *Spec) { s.Trace, s.Requests = "t.csv", -1 },
			"workload.requests = -1: must be at least 1, or 0 for all of the trace"},
		"no requests": {func(s *Spec) { s.Requests = 0 }, "workload.requests = 0: must be at " +
			"least 1"},
		"negative requests": {func(s *Spec) { s.Requests = -3 }, "workload.requests = -3"},
		"no trace":          {func(s *Spec) { s.Trace = "" }, "workload.trace"},
		"no datasets":       {func(s *Spec) { s.Datasets = nil }, "workload.datasets = []"},
		"alias":             {func(s *Spec) { s.Datasets = []string{"multifieldqa"} }, ""},
		"dataset slip":      {func(s *Spec) { s.Datasets = []string{"qaspar"} }, `workload.datasets = "qaspar": unknown`},
		"dataset hint":      {func(s *Spec) { s.Datasets = []string{"govreport"} }, `did you mean "gov_report"?`},
		"dataset twice":     {func(s *Spec) { s.Datasets = []string{"multifieldqa_en", "multifieldqa"} }, `"multifieldqa": named twice`},
		"arrivals":          {func(s *Spec) { s.Arrivals = "poison" }, `workload.arrivals = "poison": unknown; use poisson, gamma, fixed, trace, closed (did you mean "poisson"?)`},
		"mix has no times":  {func(s *Spec) { s.Arrivals = "trace" }, `workload.arrivals = "trace": the built-in mix has no times`},
		"format of the mix": {func(s *Spec) { s.Format = "azure" }, `workload.format = "azure"`},
		"format":            {func(s *Spec) { s.Trace, s.Format = "f.csv", "azur" }, `did you mean "azure"?`},
		"tokenizer":         {func(s *Spec) { s.Tokenizer = "llama4" }, `workload.tokenizer = "llama4"`},
		"output":            {func(s *Spec) { s.Output = "" }, `workload.output = ""`},
		"output scale":      {func(s *Spec) { s.OutputScale = 0 }, "workload.output_scale = 0"},
		"burstiness":        {func(s *Spec) { s.Burstiness = -2 }, "workload.burstiness = -2"},
		"burstiness range": {func(s *Spec) { s.Burstiness = 1e9 }, "workload.burstiness = 1e+09: must " +
			"be between 0.01 and 100"},
		"synthetic": {func(s *Spec) {
			s.Trace, s.PromptLengths, s.OutputLengths = "synthetic",
				"fixed(9)", "zipf(1, 9)"
		}, ""},
		"no prompt lengths": {func(s *Spec) { s.Trace = "synthetic" }, `workload.trace = "synthetic": needs lengths; set workload.prompt_lengths and workload.output_lengths`},
		"no output lengths": {func(s *Spec) { s.Trace, s.PromptLengths = "synthetic", "fixed(9)" }, `workload.prompt_lengths = "fixed(9)": needs workload.output_lengths too, as in "fixed(200)"`},
		"no such lengths": {func(s *Spec) {
			s.Trace, s.PromptLengths, s.OutputLengths = "synthetic", "fixd(9)", "fixed(9)"
		}, `workload.prompt_lengths = "fixd(9)": no distribution of that name (did you mean "fixed"?)`},
		"synthetic times": {func(s *Spec) {
			s.Trace, s.Arrivals, s.PromptLengths, s.OutputLengths = "synthetic", "trace",
				"fixed(9)", "fixed(9)"
		}, `a synthetic trace has no times of its own`},
		"clients":    {func(s *Spec) { s.Arrivals, s.Rate, s.Concurrency = "closed", 0, 4 }, ""},
		"no clients": {func(s *Spec) { s.Arrivals, s.Rate = "closed", 0 }, `workload.arrivals = "closed": needs clients; set workload.concurrency to 1 or more`},
		"endless clients": {func(s *Spec) {
			s.Arrivals, s.Rate, s.Concurrency, s.Requests = "closed", 0,
				4, 0
		}, "workload.requests = 0: must be at least 1"},
		"stages to the end": {
			func(s *Spec) { s.Rate, s.Stages, s.Requests = 0, [][]float64{{60, 1}}, 0 }, ""},
		"speed": {func(s *Spec) { s.Speed = math.Inf(-1) }, "workload.speed = -Inf"},
	} {
		s := DefaultSpec()
		c.change(&s)
		err := s.Validate()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
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
datasets = ["qasper"]
tokenizer = "llama3"
arrivals = "gamma"
burstiness = 2.0
speed = 3.0
rate = 0.5
requests = 7
output = "chat"
output_scale = 0.5
prompt_lengths = "fixed(7)"
output_lengths = "zipf(1, 9)"
stages = [[60, 1], [30, 2.5]]
concurrency = 4
think_s = 1.5
`, &s)
	if err != nil || len(meta.Undecoded()) > 0 {
		t.Fatal(err, meta.Undecoded())
	}
	want := Spec{
		Trace: "f.csv", Format: "csv", Datasets: []string{"qasper"}, Tokenizer: "llama3",
		Arrivals: "gamma", Rate: 0.5, Burstiness: 2, Speed: 3, Requests: 7, Output: "chat",
		OutputScale: 0.5, PromptLengths: "fixed(7)", OutputLengths: "zipf(1, 9)",
		Stages: [][]float64{{60, 1}, {30, 2.5}}, Concurrency: 4, ThinkS: 1.5,
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got %+v, want %+v", s, want)
	}
}
