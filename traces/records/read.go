package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Formats of records.
const (
	formatVLLM          = "vllm"
	formatSGLang        = "sglang"
	formatAIPerf        = "aiperf"
	formatGenAIPerf     = "genai-perf"
	formatLLMPerf       = "llmperf"
	formatTRTLLM        = "trtllm-bench"
	formatInferencePerf = "inference-perf"
	formatGuideLLM      = "guidellm"
	formatCSV           = "csv"
)

// known ends the error message for an unknown format.
const known = "no known record; known are the JSON of vllm bench serve and of SGLang's " +
	"bench_serving (with or without requests), AIPerf profile_export.jsonl, genai-perf " +
	"profile_export.json, llmperf individual_responses.json, trtllm-bench report or request JSON, " +
	"inference-perf per_request_lifecycle_metrics.json, guidellm benchmarks JSON, and CSV with the " +
	"columns " + csvColumns

// Read reads the record at path, compressed or not; - is standard input. It detects the format from
// the content. Requests may be in any order.
func Read(path string) (*Record, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; name the file of one record", path)
	}
	f, err := rows.Open(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}

func read(f *rows.File) (*Record, error) {
	m := &Record{}
	all, err := m.decode(f)
	if err != nil {
		return nil, err
	}
	if m.Figures != nil {
		return m, nil
	}
	if err := m.order(f.Name, all); err != nil {
		return nil, err
	}
	return m, nil
}

// note adds a sentence to what a reader must know of the record.
func (m *Record) note(format string, values ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, values...))
}

// decode returns the requests in file order. JSON is detected by its first non-blank character.
func (m *Record) decode(f *rows.File) (all []sent, err error) {
	first := f.First()
	if first != '{' && first != '[' {
		m.Format = formatCSV
		return readCSV(f)
	}
	text, err := f.All()
	if err != nil {
		return nil, err
	}
	if first == '[' {
		all, err = m.decodeList(f.Name, text)
		return all, fault(f.Name, text, err)
	}
	// Python writes a rate without limit as Infinity, which is no JSON.
	text = bytes.Replace(text, []byte(`"request_rate": Infinity`), []byte(`"request_rate": "inf"`), 1)
	var keys map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&keys); err != nil {
		return nil, fault(f.Name, text, err)
	}
	if isAIPerf(keys) {
		m.Format = formatAIPerf
		lines, err := rows.New(f.Name, bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		return readAIPerf(lines)
	}
	all, err = m.decodeObject(keys, text, text[d.InputOffset():])
	return all, fault(f.Name, text, err)
}

// decodeList reads a record of a list of requests.
func (m *Record) decodeList(name string, text []byte) ([]sent, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil || len(entries) == 0 {
		m.Format = formatInferencePerf
		return nil, err
	}
	switch keys := rows.Keys(entries[0]); {
	case slices.Contains(keys, "num_input_tokens"):
		m.Format = formatTRTLLM
		return readTRTLLM(text)
	case slices.Contains(keys, "number_input_tokens"):
		m.Format = formatLLMPerf
		return m.readLLMPerf(name, text)
	}
	m.Format = formatInferencePerf
	return readInferencePerf(text)
}

// decodeObject reads a record of one JSON object with the given keys, and rest behind it.
func (m *Record) decodeObject(keys map[string]json.RawMessage, text, rest []byte) ([]sent, error) {
	switch {
	case keys["benchmarks"] != nil:
		m.Format = formatGuideLLM
		return readGuideLLM(text)
	case keys["experiments"] != nil:
		m.Format = formatGenAIPerf
		return m.readGenAIPerf(text)
	}
	a, aggregated := aggregatesOf(text)
	if !aggregated && !isVLLM(keys) {
		return nil, rows.Wrong("", string(text[:min(len(text), 60)]), known)
	}
	m.Format = formatVLLM
	if aggregated {
		m.Format = a.format
	}
	advice := "; --append-result makes more: keep one in a file of its own"
	if strings.HasPrefix(string(keys["backend"]), `"sglang`) {
		m.Format, advice = formatSGLang, ", though each run appends one: keep one in a file of its own"
	}
	if rest = bytes.TrimSpace(rest); len(rest) > 0 {
		return nil, rows.Wrong("", string(rest), "behind a result of the benchmark, which is the whole "+
			"of a file"+advice)
	}
	if isVLLM(keys) {
		return m.readVLLM(text)
	}
	return nil, a.record(m)
}

// fault adds the file to an error, and the line for JSON.
func fault(file string, text []byte, err error) error {
	var v *rows.ValueError
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &v):
		return v.In(file, 0)
	case errors.As(err, &syntax):
		at := min(max(syntax.Offset, 0), int64(len(text)))
		line := 1 + bytes.Count(text[:at], []byte("\n"))
		return &rows.Error{File: file, Line: line, Problem: fmt.Sprintf("not valid JSON at byte %d: %s",
			at, files.JSONWords(err))}
	case errors.As(err, &wrong):
		return &rows.Error{File: file, Problem: files.JSONWords(err)}
	}
	return &rows.Error{File: file, Problem: "not valid JSON: " + files.JSONWords(err)}
}
