package records

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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
		text       string
		line       int
		key, value string // as the error has them
	}{
		"empty":            {"", 0, "", ""},
		"blank":            {" \n\n", 0, "", ""},
		"empty gzip":       {zipped(t, ""), 0, "", ""},
		"half a gzip":      {zipped(t, asCSV)[:40], 1, "", ""},
		"only a header":    {head, 0, "", ""},
		"all failed":       {head + "0,10,0,,\n", 0, "", ""},
		"unknown CSV":      {"a,b\n1,2\n", 1, "header", "a,b"},
		"unknown JSON":     {`{"a": 1}`, 1, "keys", "a"},
		"unknown list":     {`[1, 2]`, 1, "[0]", "1"},
		"missing columns":  {"arrival_s,prompt_tokens,ttft_s\n0,1,1\n", 2, "", ""},
		"column twice":     {strings.TrimSpace(head) + ",ttft_s\n0,1,2,3,4,5\n", 1, "header", "*"},
		"fields":           {head + "0,1,2,0.1\n", 2, "line", "0,1,2,0.1"},
		"e2e below ttft":   {head + "0,10,5,0.5,0.4\n", 2, "e2e_s", "0.4"},
		"zero ttft":        {head + "0,10,5,0,0.4\n", 2, "ttft_s", "0"},
		"negative ttft":    {head + "0,10,5,-1,0.4\n", 2, "ttft_s", "-1"},
		"negative arrival": {head + "-3,10,5,1,2\n", 2, "arrival_s", "-3"},
		"NaN":              {head + "0,10,5,NaN,0.4\n", 2, "ttft_s", "NaN"},
		"infinite":         {head + "0,10,5,0.1,Inf\n", 2, "e2e_s", "Inf"},
		"NaN arrival":      {head + "nan,10,5,0.1,1\n", 2, "arrival_s", "nan"},
		"no ttft":          {head + "0,10,5,,1\n", 2, "", ""},
		"word":             {head + "0,10,5,soon,1\n", 2, "ttft_s", "soon"},
		"half a token":     {head + "0,10,5.5,1,2\n", 2, "output_tokens", "5.5"},
		"no prompt":        {head + "0,0,5,1,2\n", 2, "prompt_tokens", "0"},
		"vllm, no detail":  {`{"request_throughput": 1, "total_input_tokens": 5}`, 1, "", ""},
		"vllm, lengths":    {vllm("[100, 200, 1, 300]", "[100, 200, 1]"), 2, "output_lens", ""},
		"vllm, type":       {vllm("[100, 200, 1, 300]", `[1, "a", 1, 1]`), 2, "input_lens[1]", "a"},
		"vllm, ttft":       {vllm("0.25,", "-0.25,"), 2, "ttfts[0]", "-0.25"},
		"vllm, itl":        {vllm("[0.5, 0.5]", "[0.5, -0.5]"), 3, "itls[0]", "-0.5"},
		"vllm, error":      {vllm(`"errors": [""`, `"errors": [3`), 4, "errors[0]", "3"},
		"vllm, duration": {strings.Replace(vllm("start_times", "begun"), `"duration": 3`,
			`"duration": "long"`, 1), 1, "duration", "long"},
		"half a JSON":      {asVLLM[:len(asVLLM)-20], 4, "", ""},
		"a NaN in JSON":    {vllm("0.25,", "NaN,"), 2, "ttfts[0]", ""},
		"perf, no end":     {perf(`"end_time": 1010.5`, `"end": 1`), 4, "[1]", ""},
		"perf, unstreamed": {perf(`"output_token_times": [1010.125, 1010.5]`, `"a": 1`), 4, "[1]", ""},
		"perf, backwards": {
			perf(`"end_time": 1010.5`, `"end_time": 1009`), 4, "[1].end_time", "1009"},
		"perf, type": {
			perf(`"input_tokens": 200`, `"input_tokens": "x"`), 4, "[1].info.input_tokens", "x"},
		"perf, cut short": {
			perf(`"end_time": 1010.5`, `"end_time": 1010.1`), 4, "[1].end_time", "1010.1"},
		"guide, no text": {
			guide(`"successful": [`, `"none": [`), 1, "benchmarks[0].requests.successful", ""},
		"guide, sampled": {
			guide(`"successful": 2`, `"successful": 200`), 1, "benchmarks[0].requests.successful", ""},
		"guide, total": {guide(`"successful": 2`, `"successful": "two"`), 1,
			"benchmarks[0].request_totals.successful", "two"},
		"guide, no tokens": {
			guide(`"output_tokens": 4`, `"output_tokens": null`), 1,
			"benchmarks[0].requests.successful[1]", ""},
		"guide, type": {guide(`"output_tokens": 4`, `"output_tokens": "four"`), 1,
			"benchmarks[0].requests.successful[1].output_tokens", "four"},
		"guide, no request": {`{"benchmarks": [{}]}`, 1, "benchmarks[0].requests", ""},
		"guide, ttft": {
			guide(`"time_to_first_token_ms": 125`, `"time_to_first_token_ms": 625`), 1,
			"benchmarks[0].requests.successful[1].request_latency", "0.5"},
		"guide, none": {`{"benchmarks": []}`, 0, "", ""},
	} {
		m, err := readText(c.text)
		if err == nil || m != nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, error %v, want one of a line", name, m, err)
			continue
		}
		var e *rows.Error
		if !errors.As(err, &e) || e.File != "f" || e.Line != c.line || e.Key != c.key ||
			e.Value != c.value && c.value != "*" {
			t.Errorf("%s: %v, want line %d: %s = %q", name, err, c.line, c.key, c.value)
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
		asGuideLLM, asGenAIPerf, asTRTLLM, asAIPerfTotals, asVLLMTotals} {
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
			case m.Figures == nil && !(r.TTFT > 0 && r.E2E >= r.TTFT && r.E2E <= rows.Latest.Seconds()):
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

// AIPerf writes a line for each request, with units. Requests of the warm-up are no part of its
// results, and cancelled ones failed.
func TestAIPerf(t *testing.T) {
	const metadata = `{"metadata": {"request_start_ns": %d, "benchmark_phase": %q, ` +
		`"was_cancelled": %v}, `
	const metrics = `"metrics": {"input_sequence_length": {"value": 100, "unit": "tokens"}, ` +
		`"time_to_first_token": {"value": %g, "unit": %q}, ` +
		`"request_latency": {"value": 1.5, "unit": "s"}, ` +
		`"output_sequence_length": {"value": 10, "unit": "tokens"}}, "error": null}` + "\n"
	line := func(ms int, phase string, cancelled bool, ttft float64, unit string) string {
		return fmt.Sprintf(metadata+metrics, 1700000000000000000+ms*1e6, phase, cancelled, ttft, unit)
	}
	text := line(0, "warmup", false, 9, "ms") + line(2500, "profiling", false, 250, "ms") +
		line(2000, "profiling", false, 0.5, "s") + line(2100, "profiling", true, 0.5, "s")
	m, err := readText(text)
	want := []Request{{Prompt: 100, Output: 10, TTFT: 0.5, E2E: 1.5},
		{At: des.Second / 2, Prompt: 100, Output: 10, TTFT: 0.25, E2E: 1.5}}
	if err != nil || m.Format != formatAIPerf || m.Failed != 1 || !slices.Equal(m.Requests, want) {
		t.Fatalf("%+v, %v, want %v", m, err, want)
	}
	for _, c := range [][2]string{
		{line(0, "profiling", false, 1, "parsec"), `f:1: metrics.time_to_first_token.unit = "parsec": unknown`},
		{strings.Replace(text, "time_to_first_token", "ttft", 2), "f:2: lacks metrics.time_to_first"},
		{text + `{"metadata": {"request_start_ns": "x"}}`, "f:5: lacks metrics.input_sequence_length"},
		{strings.Replace(text, "\n", "\n{", 1), "f:2: "},
		{line(0, "profiling", false, 0, "s"), "no time to the first token"},
		{strings.ReplaceAll(text, `"request_start_ns"`, `"start"`), "lacks metadata.request_start_ns"},
	} {
		if _, err := readText(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("error %v, want %q", err, c[1])
		}
	}
}

// Results without times have those of the load that they name.
func TestTimesAreMade(t *testing.T) {
	result := func(load string) string {
		return `{"backend": "sglang", ` + load + `, "duration": 4, "input_lens": [9, 9, 9], ` +
			`"output_lens": [2, 2, 2], "ttfts": [0.5, 0.5, 0.5], "itls": [[0.5], [1.5], [0.5]], ` +
			`"errors": ["", "", ""]}`
	}
	for load, want := range map[string][]float64{
		`"request_rate": Infinity, "max_concurrency": 1`:    {0, 1, 3},
		`"request_rate": Infinity, "max_concurrency": 2`:    {0, 0, 1},
		`"request_rate": Infinity, "max_concurrency": null`: {0, 0, 0},
	} {
		m, err := readText(result(load))
		if err != nil || m.Format != formatSGLang || len(m.Notes) == 0 {
			t.Fatalf("%s: %+v, %v", load, m, err)
		}
		for i, r := range m.Requests {
			if r.At.Seconds() != want[i] {
				t.Errorf("%s: request %d at %g s, want %g", load, i, r.At.Seconds(), want[i])
			}
		}
	}
	// Poisson arrivals end when the record does: the last request takes 1 s of 4.
	m, err := readText(result(`"request_rate": 2.0, "max_concurrency": null`))
	if err != nil || math.Abs(m.Requests[2].At.Seconds()-3) > 1e-9 ||
		!(m.Requests[1].At > 0 && m.Requests[1].At < m.Requests[2].At) {
		t.Errorf("%+v, %v, want the last at 3 s", m, err)
	}
	if !strings.Contains(m.Notes[0], "(Poisson arrivals at 2 requests/s, changed to "+
		"0.67 requests/s by the measured duration)") {
		t.Errorf("made from %q", m.Notes)
	}
}
