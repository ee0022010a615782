package traces

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// fuzzReader feeds bytes to one reader. Whatever they are it must not panic,
// every request it accepts is valid and in order, and it ends after an error.
func fuzzReader(f *testing.F, format string, examples ...string) {
	for _, name := range examples {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)*2/3]) // half-written
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, _, err := sourceOf("fuzz", string(data), wholeFile(format))
		if err != nil {
			return
		}
		last := des.Time(0)
		for n := 0; ; n++ {
			a, err := r.next()
			if err == io.EOF && n == 0 {
				t.Fatal("no requests, and no error")
			}
			if err != nil {
				break
			}
			if a.Prompt < 1 || a.Prompt > rows.MaxTokens || a.Output < 1 || a.Output > rows.MaxTokens {
				t.Fatalf("request %d is %+v", n, a)
			}
			if a.At < last || a.At > rows.Latest || (n == 0 && a.At != 0) {
				t.Fatalf("request %d at %d ns, after %d", n, a.At, last)
			}
			last = a.At
			if n > len(data) {
				t.Fatalf("%d requests in %d bytes", n, len(data))
			}
		}
		r.warnings()
	})
}

func FuzzLongBench(f *testing.F) {
	fuzzReader(f, FormatLongBench, "longbench/lcc.jsonl", "longbench/dureader.jsonl")
}
func FuzzAzure(f *testing.F) { fuzzReader(f, FormatAzure, "azure2023.csv", "azure2024.csv") }
func FuzzMooncake(f *testing.F) {
	fuzzReader(f, FormatMooncake, "mooncake.jsonl", "mooncake_sessions.jsonl")
}
func FuzzDynamo(f *testing.F) { fuzzReader(f, FormatDynamo, "dynamo.jsonl") }
func FuzzServeSim(f *testing.F) {
	fuzzReader(f, FormatServeSim, "servesim.jsonl", "servesim_agents.jsonl")
}
func FuzzMultiTurn(f *testing.F) { fuzzReader(f, FormatMultiTurn, "aiperf.jsonl") }
func FuzzCustom(f *testing.F)    { fuzzReader(f, FormatCustom, "vllm_custom.jsonl") }
func FuzzBurstGPT(f *testing.F)  { fuzzReader(f, FormatBurstGPT, "burstgpt.csv") }
func FuzzVidur(f *testing.F)     { fuzzReader(f, FormatVidur, "vidur.csv", "vidur_lengths.csv") }
func FuzzOwnCSV(f *testing.F)    { fuzzReader(f, FormatCSV, "own.csv", "contents.csv") }
func FuzzShareGPT(f *testing.F) {
	fuzzReader(f, FormatShareGPT, "sharegpt.json", "sharegpt.jsonl")
}

// FuzzRecognise leaves the format to the first line.
func FuzzRecognise(f *testing.F) {
	fuzzReader(f, "", "azure2023.csv", "burstgpt.csv", "vidur.csv", "own.csv", "mooncake.jsonl",
		"longbench/qasper.jsonl", "sharegpt.json", "sharegpt.jsonl", "servegen.csv", "splitwise.csv",
		"dynamo.jsonl", "servesim_agents.jsonl", "aiperf.jsonl", "vllm_custom.jsonl")
}
