package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Formats of records.
const (
	formatVLLM          = "vllm"
	formatInferencePerf = "inference-perf"
	formatGuideLLM      = "guidellm"
	formatCSV           = "csv"
)

// known ends the error message for an unknown format.
const known = "no known record; known are vllm bench serve JSON (--save-result --save-detailed), " +
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
	all, format, err := decode(f)
	if err != nil {
		return nil, err
	}
	m := &Record{Format: format}
	if err := m.order(f.Name, all); err != nil {
		return nil, err
	}
	return m, nil
}

// decode returns the requests in file order. JSON is detected by its first non-blank character.
func decode(f *rows.File) (all []sent, format string, err error) {
	first := f.First()
	if first != '{' && first != '[' {
		all, err = readCSV(f)
		return all, formatCSV, err
	}
	text, err := f.All()
	if err != nil {
		return nil, "", err
	}
	if first == '[' {
		all, err = readInferencePerf(text)
		return all, formatInferencePerf, fault(f.Name, text, err)
	}
	all, format, err = decodeObject(text)
	return all, format, fault(f.Name, text, err)
}

// decodeObject reads one JSON object.
func decodeObject(text []byte) (all []sent, format string, err error) {
	var keys map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&keys); err != nil {
		return nil, "", err
	}
	switch {
	case keys["benchmarks"] != nil:
		all, err = readGuideLLM(text)
		return all, formatGuideLLM, err
	case !isVLLM(keys):
		return nil, "", rows.Wrong("", string(text[:min(len(text), 60)]), known)
	}
	if rest := bytes.TrimSpace(text[d.InputOffset():]); len(rest) > 0 {
		return nil, "", rows.Wrong("", string(rest), "behind a result of vllm bench serve, which is the "+
			"whole of a file; --append-result makes more: keep one in a file of its own")
	}
	all, err = readVLLM(text)
	return all, formatVLLM, err
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
