package records

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// The same three answered requests and one that failed, as each tool records
// them. In JSON, where requests stand as they ended, the second arrived first.
const (
	asCSV = "e2e_s,note,prompt_tokens,ttft_s,arrival_s,output_tokens\n" +
		"0.5,b,200,0.125,10,4\n0,failed,1,0,10.2,0\n1.25,a,100,0.25,10.5,11\n0.75,c,300,0.75,12,1\n"
	asVLLM = `{"date": "20260201-120000", "backend": "vllm", "request_rate": "inf", "duration": 3, "completed": 3, "total_input_tokens": 600,
		"input_lens": [100, 200, 1, 300], "output_lens": [11, 4, 0, 1], "ttfts": [0.25, 0.125, 0.0, 0.75],
		"itls": [[0.5, 0.5], [0.125, 0.125, 0.125], [], []], "start_times": [1010.5, 1010, 1010.2, 1012], "generated_texts": ["", "", "", ""],
		"errors": ["", "", "Service Unavailable", ""]}`
	asInferencePerf = `[
		{"start_time": 1010.5, "end_time": 1011.75, "request": "", "response": "", "error": null,
		 "info": {"input_tokens": 100, "response_metrics": {"output_tokens": 9, "server_usage": {"completion_tokens": 11}, "output_token_times": [1010.75, 1011.75]}}},
		{"start_time": 1010, "end_time": 1010.5, "error": null, "info": {"input_tokens": 200, "output_tokens": 4, "output_token_times": [1010.125, 1010.5]}},
		{"start_time": 1010.2, "end_time": 1010.3, "error": {"error_type": "HTTP Error 503", "error_msg": ""}, "info": {"input_tokens": 1, "response_metrics": null}},
		{"start_time": 1012, "end_time": 1012.75, "error": null, "info": null,
		 "computed_metrics": {"time_to_first_token": 0.75, "input_tokens": 300, "output_tokens": 1}}]`
	asGuideLLM = `{"metadata": {}, "benchmarks": [
		{"requests": {"successful": [
			{"request_start_time": 1010.5, "request_latency": 1.25, "time_to_first_token_ms": 250, "prompt_tokens": 100, "output_tokens": 11},
			{"start_time": 1010, "request_latency": 0.5, "time_to_first_token_ms": 125, "prompt_tokens": 200, "output_tokens": 4}],
			"incomplete": [], "errored": [{"error": "503"}]}, "request_totals": {"successful": 2, "errored": 1}},
		{"requests": {"successful": [
			{"request_start_time": 1012, "request_latency": 0.75, "time_to_first_token_ms": 750, "prompt_tokens": 300, "output_tokens": 1}]}}]}`
)

// readText reads a record of that text.
func readText(text string) (*Record, error) {
	f, err := rows.New("f", strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return read(f)
}

func TestRead(t *testing.T) {
	want := []Request{
		{At: 0, Prompt: 200, Output: 4, TTFT: 0.125, E2E: 0.5},
		{At: des.Second / 2, Prompt: 100, Output: 11, TTFT: 0.25, E2E: 1.25},
		{At: 2 * des.Second, Prompt: 300, Output: 1, TTFT: 0.75, E2E: 0.75},
	}
	for format, text := range map[string]string{
		formatCSV: asCSV, formatVLLM: asVLLM,
		formatInferencePerf: asInferencePerf, formatGuideLLM: asGuideLLM,
	} {
		for how, file := range map[string]string{"plain": text, "gzip": zipped(t, text),
			"marked": "\xef\xbb\xbf\n" + text} {
			m, err := readText(file)
			if err != nil {
				t.Errorf("%s, %s: %v", format, how, err)
				continue
			}
			if m.Format != format || m.Failed != 1 || !slices.Equal(m.Requests, want) {
				t.Errorf("%s, %s: %s, %d failed\n got %v\nwant %v", format, how, m.Format, m.Failed,
					m.Requests, want)
			}
		}
	}
	if tpot := want[0].TPOT(); tpot != 0.125 || !math.IsNaN(want[2].TPOT()) {
		t.Errorf("TPOT of four tokens %v s, of one %v s", tpot, want[2].TPOT())
	}
}

func zipped(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A published run of vLLM, and its requests through the project's own format.
func TestReplays(t *testing.T) {
	m, err := Read("../testdata/measured/llama2-7b_h100_codegen.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Requests) != 372 || m.Failed != 0 || m.Requests[0].At != 0 {
		t.Fatalf("%d requests, %d failed", len(m.Requests), m.Failed)
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	var out bytes.Buffer
	if err := m.WriteTrace(&out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := traces.DefaultSpec()
	s.Trace, s.Arrivals, s.Rate, s.Requests = path, traces.ArrivalsTrace, 0, len(m.Requests)
	stream, err := traces.Open(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range m.Requests {
		a, ok, err := stream.Next()
		if !ok || err != nil || a.At != r.At || a.Prompt != r.Prompt || a.Output != r.Output {
			t.Fatalf("request %d: %+v, %v, %v; recorded is %+v", i, a, ok, err, r)
		}
	}
}

func TestBadRecords(t *testing.T) {
	const head = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n"
	vllm := func(old, replacement string) string {
		return strings.Replace(asVLLM, old, replacement, 1)
	}
	perf := func(old, replacement string) string {
		return strings.Replace(asInferencePerf, old, replacement, 1)
	}
	guide := func(old, replacement string) string {
		return strings.Replace(asGuideLLM, old, replacement, 1)
	}
	for name, c := range map[string]struct {
		text string
		want []string // parts of the one message
	}{
		"empty":         {"", []string{"f: empty file"}},
		"blank":         {" \n\n", []string{"f: empty file"}},
		"empty gzip":    {zipped(t, ""), []string{"f: empty file"}},
		"half a gzip":   {zipped(t, asCSV)[:40], []string{"f:", "cut short"}},
		"only a header": {head, []string{"f: no requests"}},
		"all failed":    {head + "0,10,0,,\n", []string{"no requests in it but 1 failed one"}},
		"unknown CSV": {"a,b\n1,2\n", []string{"f:1:", "no known record", "vllm bench serve",
			"inference-perf", "guidellm", "arrival_s,"}},
		"unknown JSON": {`{"a": 1}`, []string{"no known record", "guidellm"}},
		"unknown list": {`[1, 2]`, []string{"no known record"}},
		"missing columns": {"arrival_s,prompt_tokens,ttft_s\n0,1,1\n",
			[]string{"f:1:", "lacks output_tokens, e2e_s"}},
		"column twice": {strings.TrimSpace(head) + ",ttft_s\n0,1,2,3,4,5\n",
			[]string{"f:1:", "ttft_s twice"}},
		"fields": {head + "0,1,2,0.1\n", []string{"f:2:", "4 fields", "5 columns"}},
		"e2e below ttft": {head + "0,10,5,0.5,0.4\n",
			[]string{"f:2:", `e2e_s = "0.4"`, "before the first, at 0.5 s"}},
		"zero ttft":        {head + "0,10,5,0,0.4\n", []string{"f:2:", `ttft_s = "0"`, "above 0"}},
		"negative ttft":    {head + "0,10,5,-1,0.4\n", []string{"f:2:", `ttft_s = "-1"`, "negative"}},
		"negative arrival": {head + "-3,10,5,1,2\n", []string{"f:2:", `arrival_s = "-3"`, "negative"}},
		"NaN": {head + "0,10,5,NaN,0.4\n",
			[]string{"f:2:", `ttft_s = "NaN"`, "not a finite"}},
		"infinite": {head + "0,10,5,0.1,Inf\n",
			[]string{"f:2:", `e2e_s = "+Inf"`, "not a finite"}},
		"arrivals, backwards": {head + "1,10,5,0.1,1\n0.5,10,5,0.1,1\n", []string{"f:3:", `arrival_s = "0.5"`, "before the request above", "sort"}},
		"NaN arrival":         {head + "nan,10,5,0.1,1\n", []string{"f:2:", "arrival_s", "not a time"}},
		"no ttft":             {head + "0,10,5,,1\n", []string{"f:2:", "ttft_s", "missing or empty"}},
		"word":                {head + "0,10,5,soon,1\n", []string{"f:2:", `ttft_s = "soon"`}},
		"half a token":        {head + "0,10,5.5,1,2\n", []string{"f:2:", `output_tokens = "5.5"`}},
		"no prompt":           {head + "0,0,5,1,2\n", []string{"f:2:", `prompt_tokens = "0"`}},
		"vllm, no times": {vllm("start_times", "start"),
			[]string{"lacks start_times", "--save-detailed", "0.15"}},
		"vllm, no detail": {`{"request_throughput": 1, "total_input_tokens": 5}`,
			[]string{"lacks input_lens, output_lens, ttfts, itls, errors", "--save-detailed"}},
		"vllm, lengths": {vllm("[100, 200, 1, 300]", "[100, 200, 1]"),
			[]string{"output_lens", "4 entries", "has 3"}},
		"vllm, type": {vllm("[100, 200, 1, 300]", `["a"]`),
			[]string{"input_lens", "not as vllm bench serve writes it"}},
		"vllm, ttft": {vllm("0.25,", "-0.25,"), []string{`ttfts[0] = "-0.25"`, "negative"}},
		"vllm, itl": {vllm("[0.5, 0.5]", "[0.5, -0.5]"),
			[]string{`itls[0] = "-0.5"`, "negative"}},
		"vllm, twice": {asVLLM + "\n" + asVLLM,
			[]string{"more than one result", "--append-result"}},
		"half a JSON":   {asVLLM[:len(asVLLM)-20], []string{"f", "cut short"}},
		"a NaN in JSON": {vllm("0.25,", "NaN,"), []string{"f:2:", "not valid JSON"}},
		"perf, no end":  {perf(`"end_time": 1010.5`, `"end": 1`), []string{"[1]", "end_time"}},
		"perf, unstreamed": {perf(`"output_token_times": [1010.125, 1010.5]`, `"a": 1`),
			[]string{"[1]", "lacks output_token_times", "streaming"}},
		"perf, backwards": {perf(`"end_time": 1010.5`, `"end_time": 1009`),
			[]string{"[1] end_time - start_time", `"-1"`, "negative"}},
		"perf, type": {perf(`"input_tokens": 200`, `"input_tokens": "x"`),
			[]string{"[1]", "not as inference-perf writes it"}},
		"perf, cut short": {perf(`"end_time": 1010.5`, `"end_time": 1010.1`),
			[]string{"[1] end_time", "before the first"}},
		"guide, no text": {guide(`"successful": [`, `"none": [`),
			[]string{"benchmarks[0].requests.successful", "has 0 of 2"}},
		"guide, sampled": {guide(`"successful": 2`, `"successful": 200`),
			[]string{"benchmarks[0].requests.successful", "has 2 of 200", "sampling"}},
		"guide, no tokens": {guide(`"output_tokens": 4`, `"output_tokens": null`),
			[]string{"benchmarks[0].requests.successful[1]", "lacks output_tokens"}},
		"guide, type": {guide(`"output_tokens": 4`, `"output_tokens": "four"`),
			[]string{"f: ", "output_tokens", "want an integer, got string"}},
		"guide, no request": {`{"benchmarks": [{}]}`, []string{"benchmarks[0].requests", "missing"}},
		"guide, ttft": {guide(`"time_to_first_token_ms": 125`, `"time_to_first_token_ms": 625`),
			[]string{"successful[1].request_latency", "before the first"}},
		"guide, none": {`{"benchmarks": []}`, []string{"no requests"}},
	} {
		m, err := readText(c.text)
		if err == nil || m != nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, error %v, want one of a line", name, m, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", name, err, part)
			}
		}
	}
	for path, want := range map[string]string{"nowhere.json": "nowhere.json: no such file",
		"../testdata": "../testdata: a folder"} {
		if _, err := Read(path); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A client's clock is good to a microsecond: a last token that seems to come
// that much before the first one came with it.
func TestRounding(t *testing.T) {
	m, err := readText("arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n0,10,1,0.250001,0.25\n")
	if err != nil || m.Requests[0].E2E != m.Requests[0].TTFT {
		t.Errorf("%+v, %v", m, err)
	}
}

// FuzzRecords: whatever the bytes are, reading them neither panics nor gives a
// request that could not have been.
func FuzzRecords(f *testing.F) {
	for _, text := range []string{asCSV, asVLLM, asInferencePerf,
		asGuideLLM} {
		f.Add([]byte(text))
		f.Add([]byte(text[:len(text)*2/3]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := readText(string(data))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("more than a line: %q", err)
			}
			return
		}
		last := des.Time(0)
		for i, r := range m.Requests {
			switch {
			case i == 0 && r.At != 0, r.At < last, r.At > rows.Latest:
				t.Fatalf("request %d at %d ns, after %d", i, r.At, last)
			case r.Prompt < 1 || r.Prompt > rows.MaxTokens || r.Output < 1 || r.Output > rows.MaxTokens:
				t.Fatalf("request %d has %d and %d tokens", i, r.Prompt, r.Output)
			case !(r.TTFT > 0 && r.E2E >= r.TTFT && r.E2E <= rows.Latest.Seconds()):
				t.Fatalf("request %d has a TTFT of %v and an end at %v s", i, r.TTFT, r.E2E)
			}
			last = r.At
		}
		if len(m.Requests) == 0 {
			t.Fatal("no requests, and no error")
		}
	})
}

// A record's arrivals may have the name that a trace's have.
func TestArrivalsUnderBothNames(t *testing.T) {
	for _, name := range []string{"arrival_s", "arrived_s"} {
		m, err := readText("e2e_s," + name + ",prompt_tokens,output_tokens,ttft_s\n1,2,3,4,0.5\n")
		if err != nil || m.Requests[0].Prompt != 3 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
