package traces

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// sourceOf is newSource of a text.
func sourceOf(name, text string, o options) (source, string, error) {
	f, err := rows.New(name, strings.NewReader(text))
	if err != nil {
		return nil, "", err
	}
	return newSource(f, o)
}

// readAll reads a source to its end.
func readAll(src source) (as []sim.Arrival, err error) {
	all, _ := each(src)
	for a, err := range all {
		if err != nil {
			return as, err
		}
		as = append(as, a)
	}
	return as, nil
}

func TestReaders(t *testing.T) {
	at := des.FromSeconds
	for _, c := range []struct {
		file, format string
		timed        bool
		want         []sim.Arrival
		warn         string
	}{
		{"azure2023.csv", FormatAzure, true, []sim.Arrival{
			{At: 0, Prompt: 4808, Output: 10}, {At: 52 * des.Millisecond, Prompt: 3180, Output: 8},
			{At: 98_189 * des.Microsecond, Prompt: 110, Output: 27},
			{At: 140_684 * des.Microsecond, Prompt: 7433, Output: 14},
			{At: 444_994 * des.Microsecond, Prompt: 34, Output: 12},
			{At: at(29.479069), Prompt: 1555, Output: 19},
		}, "no line end"},
		{"azure2024.csv", FormatAzure, true, []sim.Arrival{
			{At: 0, Prompt: 2162, Output: 5}, {At: 7_405 * des.Microsecond, Prompt: 2399, Output: 6},
			{At: 990_070 * des.Microsecond, Prompt: 76, Output: 15},
			{At: 1_084_070 * des.Microsecond, Prompt: 2376, Output: 8},
		}, ""},
		{"burstgpt.csv", FormatBurstGPT, true, []sim.Arrival{
			{At: 0, Prompt: 472, Output: 18, Set: "ChatGPT"},
			{At: 40 * des.Second, Prompt: 1087, Output: 230, Set: "ChatGPT"},
			{At: 113 * des.Second, Prompt: 417, Output: 276, Set: "GPT-4"},
			{At: at(139.5), Prompt: 185, Output: 215, Set: "ChatGPT"},
		}, "1 row left out that no service answered"},
		{"mooncake.jsonl", FormatMooncake, true, []sim.Arrival{
			{At: 0, Prompt: 6758, Output: 500}, {At: 0, Prompt: 7322, Output: 490},
			{At: 3052 * des.Millisecond, Prompt: 2290, Output: 316},
			{At: 5999 * des.Millisecond, Prompt: 1053, Output: 26},
			{At: 9 * des.Second, Prompt: 87169, Output: 402},
		}, ""},
		{"vidur.csv", FormatVidur, true, []sim.Arrival{
			{At: 0, Prompt: 4808, Output: 10}, {At: 52 * des.Millisecond, Prompt: 3180, Output: 8},
			{At: 98_189 * des.Microsecond, Prompt: 110, Output: 27},
			{At: 199_961_506 * des.Microsecond, Prompt: 161, Output: 11},
		}, ""},
		{"vidur_lengths.csv", FormatVidur, false,
			[]sim.Arrival{{Prompt: 3812, Output: 142}, {Prompt: 2890, Output: 77}}, ""},
		{"own.csv", FormatCSV, true, []sim.Arrival{
			{At: 0, Prompt: 512, Output: 64, Set: "chat"},
			{At: 250_000_001, Prompt: 2048, Output: 128, Set: "code, long"},
			{At: at(12.5), Prompt: 1, Output: 1},
		}, ""},
	} {
		for _, forced := range []string{"", c.format} {
			src, format, err := openTrace(filepath.Join("testdata", c.file), wholeFile(forced))
			if err != nil {
				t.Errorf("%s: %v", c.file, err)
				continue
			}
			got, err := readAll(src)
			for i := range got {
				got[i].Content = nil // content_test.go looks at it
			}
			if err != nil || format != c.format || src.timed() != c.timed || !slices.Equal(got, c.want) {
				t.Errorf("%s: format %s, timed %v, error %v\n got %v\nwant %v", c.file, format, src.timed(),
					err, got, c.want)
			}
			if w := strings.Join(warn.Texts(src.warnings()), "\n"); (w == "") != (c.warn == "") ||
				!strings.Contains(w, c.warn) {
				t.Errorf("%s: warnings %q, want %q", c.file, w, c.warn)
			}
			if err := src.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestRecordIsATrace: a record of a server, which says arrival_s, has times of its own.
func TestRecordIsATrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.csv")
	text := "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n3,10,2,0.1,0.2\n4.5,20,1,0.1,0.1\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	want := "arrived_s,prompt_tokens,output_tokens,set\n0.000000000,10,2,\n1.500000000,20,1,\n"
	if _, _, err := ConvertTo(t.Context(), &out, path, ""); err != nil || out.String() != want {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestLongBenchRecord(t *testing.T) {
	const record = `{"input": "q", "context": "c", "answers": ["a"], "length": 1000, "dataset": "SET", "language": "en", "all_classes": null, "_id": "0"}` + "\n"
	for _, c := range []struct {
		set, name      string
		tokenizer      Tokenizer
		prompt, output int
	}{
		{"qasper", "qasper", Llama2, 1690, 128}, // 1.69 tokens a word
		{"qasper", "qasper", Llama3, 1420, 128},
		{"qasper_e", "qasper", Llama3, 1420, 128},
		{"multifieldqa", "multifieldqa_en", Llama3, 1500, 64},
		{"vcsum", "vcsum", Llama2, 1430, 512}, // per Chinese character
		{"lcc", "lcc", Llama2, 3173, 64},
	} {
		o := wholeFile("")
		o.tokenizer = c.tokenizer
		r, format, err := sourceOf("f", strings.Replace(record, "SET", c.set, 1), o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := readAll(r)
		want := []sim.Arrival{{Prompt: c.prompt, Output: c.output, Set: c.name}}
		if err != nil || format != FormatLongBench || !slices.Equal(got, want) {
			t.Errorf("%s under %s: %s %v %v, want %v", c.set, c.tokenizer, format, got, err, want)
		}
	}
}

func TestLongBenchLongLine(t *testing.T) {
	line := `{"context": "` + strings.Repeat("word ", 1<<19) + `", "length": 524288, "dataset": "qasper"}`
	r, _, err := sourceOf("f", line, wholeFile(""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := readAll(r); err != nil || len(got) != 1 {
		t.Errorf("%d requests, %v", len(got), err)
	}
}

// A file without line ends is refused at the limit, not read into memory.
func TestLineLimit(t *testing.T) {
	for _, begin := range []string{"a,b\n", "{"} {
		file := io.MultiReader(strings.NewReader(begin), io.LimitReader(zeros{}, 1<<40))
		f, err := rows.New("f", file)
		if err == nil {
			_, _, err = newSource(f, wholeFile(""))
		}
		var e *rows.Error
		if !errors.As(err, &e) || e.Line == 0 {
			t.Errorf("%q: %v", begin, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
