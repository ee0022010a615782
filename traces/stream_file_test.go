package traces

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
)

func TestStreamOfAFile(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests = "testdata/burstgpt.csv", 10 })
	if n := len(collect(t, s)); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	if w := warn.Texts(s.Warnings()); len(w) != 2 || !strings.Contains(w[0], "1 row left out") ||
		!strings.Contains(w[1], "ended after 4 of 10") {
		t.Errorf("warnings %q", w)
	}
	if _, ok, err := s.Next(); ok || err != nil {
		t.Errorf("after the end: %v %v", ok, err)
	}
	if n := len(collect(t,
		open(t, 1, func(s *Spec) { s.Trace, s.Requests = "testdata/burstgpt.csv", 2 }))); n != 2 {
		t.Errorf("%d requests, want the 2 asked for", n)
	}
	if w := open(t, 1, func(*Spec) {}).Warnings(); len(w) != 0 {
		t.Errorf("the mix warns %q", w)
	}
}

// Of a trace no row is left out, or added, without a word.
func TestRowsLeftOutAreCounted(t *testing.T) {
	const burst, folder = "testdata/burstgpt.csv", "testdata/longbench"
	azure := filepath.Join(t.TempDir(), "azure.csv")
	rows := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,5,0\n2023-11-16 " +
		"18:17:04,5,1\n2023-11-16 18:17:05,0,7\n"
	if err := os.WriteFile(azure, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Spec)
		made   int
		want   []string // warnings, each by its beginning and its end
	}{
		"all": {func(s *Spec) { s.Trace, s.Requests = burst, 0 }, 4,
			[]string{"1 row left out that no service answered|" + burst}},
		"fewer": {func(s *Spec) { s.Trace, s.Requests = burst, 2 }, 2,
			[]string{"3 rows left out beyond workload.requests = 2|" + burst}},
		"just as many": {func(s *Spec) { s.Trace, s.Requests = burst, 4 }, 4,
			[]string{"1 row left out that|" + burst}},
		"never served": {func(s *Spec) { s.Trace, s.Requests = azure, 0 }, 1,
			[]string{"2 rows left out that no service answered|" + azure}},
		"all of a folder": {func(s *Spec) { s.Trace, s.Requests, s.Datasets = folder, 0, AllSets() }, 44,
			[]string{"llama2 prompt tokens are estimated|" + folder}},
		"some of a folder": {
			func(s *Spec) { s.Trace, s.Requests, s.Datasets = folder, 10, AllSets() }, 10,
			[]string{"llama2 prompt tokens are estimated|" + folder, "34 rows left out beyond " +
				"workload.requests = 10|" + folder}},
		"some sets of a file": {func(s *Spec) {
			s.Trace, s.Requests, s.Datasets = "testdata/longbench/lcc.jsonl", 0, []string{"lcc"}
		}, 20, []string{"llama2 prompt tokens|testdata/longbench/lcc.jsonl"}},
	} {
		s := open(t, 1, c.change)
		made, warnings := len(collect(t, s)), warn.Texts(s.Warnings())
		fits := made == c.made && len(warnings) == len(c.want)
		for i := 0; fits && i < len(c.want); i++ {
			begin, end, _ := strings.Cut(c.want[i], "|")
			fits = strings.HasPrefix(warnings[i], begin) && strings.HasSuffix(warnings[i], ": "+end)
		}
		if !fits {
			t.Errorf("%s: %d requests and %q, want %d and %q", name, made, warnings, c.made, c.want)
		}
	}
}

func TestTraits(t *testing.T) {
	for trace, want := range map[string]Traits{
		BuiltIn: {Format: FormatLongBench, Texts: true}, Sessions: {Turns: true}, Synthetic: {},
		"testdata/longbench":               {Format: FormatLongBench, Texts: true},
		"testdata/vidur_lengths.csv":       {Format: FormatVidur},
		"testdata/vidur.csv":               {Format: FormatVidur, Timed: true},
		"testdata/azure2024.csv":           {Format: FormatAzure, Timed: true},
		"testdata/burstgpt.csv":            {Format: FormatBurstGPT, Timed: true},
		"testdata/mooncake.jsonl":          {Format: FormatMooncake, Timed: true},
		"testdata/vllm_custom.jsonl":       {Format: FormatCustom, Texts: true},
		"testdata/aiperf.jsonl":            {Format: FormatMultiTurn, Texts: true, Turns: true},
		"testdata/mooncake_sessions.jsonl": {Format: FormatMooncake, Timed: true, Turns: true},
	} {
		s := DefaultSpec()
		s.Trace = trace
		if has, err := s.Traits(); err != nil || has != want {
			t.Errorf("%s: %+v, want %+v, error %v", trace, has, want, err)
		}
	}
}

func TestStreamOfAFolder(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Trace, s.Output = "testdata/longbench", OutputChat })
	as := collect(t, s)
	if len(as) != 36 { // hotpotqa is not one of the paper's sets
		t.Errorf("%d requests, want 36", len(as))
	}
	chat := findSet(loadTable(), "dureader").output(OutputChat)
	shorter := false
	for _, a := range as {
		if a.Set == "dureader" && !slices.Contains(chat.quantiles, float64(a.Output)) {
			t.Errorf("dureader output %d was never one of the chat model", a.Output)
		}
		shorter = shorter || a.Output < 60
	}
	if !shorter {
		t.Error("no output below 60 tokens: chat lengths are not used")
	}
	if w := warn.Texts(s.Warnings()); len(w) != 3 ||
		!strings.HasPrefix(w[0], "8 rows left out of sets") ||
		!strings.Contains(w[1], "estimated") {
		t.Errorf("warnings %q", w)
	}
}

func TestOpenFindsWhatIsWrong(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("arrived_s,prompt_tokens,output_tokens\n0,x,1\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Trace = bad }, `bad.csv:2: prompt_tokens = "x"`},
		{func(s *Spec) { s.Trace = bad + ".gz" }, "no such file"},
		{func(s *Spec) { s.Trace, s.Arrivals = "testdata/longbench", ArrivalsTrace },
			"has no times of its own"},
		{func(s *Spec) { s.Trace, s.Arrivals = "testdata/vidur_lengths.csv", ArrivalsTrace },
			"has no times of its own"},
		{func(s *Spec) { s.Trace = "testdata/longbench/hotpotqa.jsonl" }, `no requests of longbench.datasets in it, but 8 of others such as "hotpotqa"`},
	} {
		spec := DefaultSpec()
		c.change(&spec)
		if _, err := Open(spec, 1); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "workload.trace: ") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A file whose times run back is accepted if its times are not used.
func TestDisorderMattersOnlyToReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("arrived_s,prompt_tokens,output_tokens\n9,5,1\n2,6,1\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if n := len(collect(t, open(t, 1, func(s *Spec) { s.Trace = path }))); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	s := open(t, 1, func(s *Spec) { s.Trace, s.Arrivals = path, ArrivalsTrace })
	if _, _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an error stays
		if _, ok, err := s.Next(); ok || err == nil || !strings.Contains(err.Error(), "t.csv:3") {
			t.Errorf("replayed: %v %v", ok, err)
		}
	}
}
