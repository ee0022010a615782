package traces

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// A Measured is the record of a real server: which requests arrived, when, and how long each
// took. Requests are in order of arrival; the first arrives at 0.
type Measured struct {
	Format   string // vllm | inference-perf | guidellm | csv
	Requests []Served
	Failed   int // requests of the record that were never answered in full, left out
}

// Served is one request of a real server and what its client saw.
type Served struct {
	At     des.Time // since the first request of the record
	Prompt int      // tokens
	Output int      // tokens, at least 1
	TTFT   float64  // seconds from sending the request to its first token
	E2E    float64  // seconds from sending it to its last token; at least TTFT
	// Content is what the prompt consists of; nil where the record does not say it.
	Content *prefix.Content
}

// Identified reports whether the record says what its prompts have in common.
func (m *Measured) Identified() bool { return len(m.Requests) > 0 && m.Requests[0].Content != nil }

// TPOT is the mean time between the tokens of the request in seconds, (E2E - TTFT) / (Output -
// 1); NaN of a single token, which has none after it.
func (s *Served) TPOT() float64 { return MeanTPOT(s.TTFT, s.E2E, s.Output) }

// MeanTPOT is the mean time between the tokens of one request.
func MeanTPOT(ttft, e2e float64, output int) float64 {
	if output < 2 {
		return math.NaN()
	}
	return (e2e - ttft) / float64(output-1)
}

// Formats of records.
const (
	measuredVLLM          = "vllm"
	measuredInferencePerf = "inference-perf"
	measuredGuideLLM      = "guidellm"
	measuredCSV           = "csv"
)

// measuredKnown ends the message of a file that is no record.
const measuredKnown = "no known record; known are vllm bench serve JSON (--save-result " +
	"--save-detailed), " +
	"inference-perf per_request_lifecycle_metrics.json, guidellm benchmarks JSON, and CSV with the " +
	"columns " + measuredColumns

// ReadMeasured reads the record at path, packed or not, - for standard input, and recognises its
// format by its content. Requests may be recorded in any order.
func ReadMeasured(path string) (*Measured, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: a folder; name the file of one record", path)
	}
	f, err := files.Input(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMeasured(files.Label(path), f)
}

func readMeasured(file string, from io.Reader) (*Measured, error) {
	z, err := files.Unpack(from)
	if err != nil {
		return nil, &LineError{File: file, Problem: err.Error()}
	}
	defer z.Close()
	all, format, err := decodeMeasured(file, bufio.NewReaderSize(z, 64<<10))
	if err != nil {
		return nil, err
	}
	m := &Measured{Format: format}
	if err := m.order(file, all); err != nil {
		return nil, err
	}
	return m, nil
}

// decodeMeasured returns the requests as the file gives them. JSON is recognised by its first
// character that is not blank.
func decodeMeasured(file string, b *bufio.Reader) (all []sent, format string, err error) {
	head, _ := b.Peek(512)
	if head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte(byteOrderMark))); len(head) == 0 ||
		head[0] != '{' && head[0] != '[' {
		all, err = readMeasuredCSV(newLines(file, b))
		return all, measuredCSV, err
	}
	text, err := files.ReadAll(file, b)
	if err != nil {
		return nil, "", err
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if head[0] == '[' {
		all, err = readInferencePerf(text)
		return all, measuredInferencePerf, measuredFault(file, text, err)
	}
	return decodeMeasuredJSON(file, text)
}

// byteOrderMark is what some editors put first.
const byteOrderMark = "\xef\xbb\xbf"

// decodeMeasuredJSON reads one JSON object.
func decodeMeasuredJSON(file string, text []byte) (all []sent, format string, err error) {
	var keys map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&keys); err != nil {
		return nil, "", measuredFault(file, text, err)
	}
	switch {
	case keys["benchmarks"] != nil:
		format = measuredGuideLLM
		all, err = readGuideLLM(text)
	case isVLLM(keys):
		format = measuredVLLM
		switch rest := bytes.TrimSpace(text[d.InputOffset():]); {
		case bytes.HasPrefix(rest, []byte("{")): // vllm bench serve --append-result
			return nil, format, &LineError{File: file, Problem: "more than one result in the file, as " +
				"--append-result makes it; keep one in a file of its own"}
		case len(rest) > 0:
			return nil, format, &LineError{File: file, Value: string(rest), Problem: "not valid JSON: the " +
				"end is wanted"}
		}
		all, err = readVLLM(keys)
	default:
		err = &valueError{"", string(text[:min(len(text), 60)]), measuredKnown}
	}
	return all, format, measuredFault(file, text, err)
}

// measuredFault adds the file, and of faulty JSON the line.
func measuredFault(file string, text []byte, err error) error {
	var v *valueError
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &v):
		return &LineError{File: file, Key: v.key, Value: v.value, Problem: v.problem}
	case errors.As(err, &syntax):
		at := min(max(syntax.Offset, 0), int64(len(text)))
		line := 1 + bytes.Count(text[:at], []byte("\n"))
		return &LineError{File: file, Line: line, Problem: fmt.Sprintf("not valid JSON at byte %d: %s",
			at, files.JSONWords(err))}
	case errors.As(err, &wrong):
		return &LineError{File: file, Problem: files.JSONWords(err)}
	}
	return &LineError{File: file, Problem: "not valid JSON: " + files.JSONWords(err)}
}

// sent is a request as its record gives it.
type sent struct {
	where  place // for messages
	failed bool  // nothing else is looked at
	at     float64
	exact  des.Time // at on the record's clock, where it is given as a decimal
	prompt int
	output int
	ttft   float64
	e2e    float64

	content *prefix.Content // of the prompt, where the record says it
}

// place says which request of a record is meant: a line, or an index into a JSON document.
type place struct {
	line              int
	start, ttft, last string // keys of the times
}

// slack is how much e2e may fall below ttft, in seconds: both are differences of times since
// 1970, or rounded to microseconds.
const slack = 2e-6

// order checks all requests, sorts them by arrival, and sets the first to 0.
func (m *Measured) order(file string, all []sent) error {
	for i := range all {
		s := &all[i]
		if s.failed {
			m.Failed++
			continue
		}
		if v := s.check(); v != nil {
			return &LineError{File: file, Line: s.where.line, Key: v.key, Value: v.value, Problem: v.problem}
		}
	}
	all = slices.DeleteFunc(all, func(s sent) bool { return s.failed })
	if len(all) == 0 {
		if m.Failed > 0 {
			return &LineError{File: file, Problem: "no requests in it but " + plural(m.Failed, "failed one")}
		}
		return &LineError{File: file, Problem: "no requests in it"}
	}
	slices.SortStableFunc(all, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.exact, b.exact), cmp.Compare(a.at, b.at))
	})
	first := all[0]
	for _, s := range all {
		at := s.exact - first.exact + des.FromSeconds(s.at-first.at)
		m.Requests = append(m.Requests, Served{At: at, Prompt: s.prompt, Output: s.output, TTFT: s.ttft,
			E2E: max(s.e2e, s.ttft), Content: s.content})
	}
	return nil
}

// check returns what is wrong with an answered request, or nil.
func (s *sent) check() *valueError {
	for _, v := range []struct {
		key   string
		value float64
	}{{s.where.start, s.at}, {s.where.ttft, s.ttft}, {s.where.last, s.e2e}} {
		switch {
		case math.IsNaN(v.value) || math.IsInf(v.value, 0):
			return &valueError{v.key, decimals(v.value), "not a finite number of seconds"}
		case v.value < 0:
			return &valueError{v.key, decimals(v.value), "negative; times run forward"}
		case v.value > latest.Seconds():
			return &valueError{v.key, decimals(v.value), "later than 285 years; is the unit right?"}
		}
	}
	switch {
	case s.ttft == 0:
		return &valueError{s.where.ttft, "0", "must be above 0; record with streaming on, so that " +
			"first tokens have a time"}
	case s.e2e < s.ttft-slack:
		return &valueError{s.where.last, decimals(s.e2e), "the last token comes before the first, at " +
			decimals(s.ttft) + " s"}
	case s.prompt < 1 || s.prompt > maxTokens || s.output < 1 || s.output > maxTokens:
		return &valueError{"tokens", fmt.Sprintf("%d and %d", s.prompt, s.output),
			fmt.Sprintf("prompt and output must each have 1 to %d tokens", maxTokens)}
	}
	return nil
}

func decimals(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// WriteTrace writes the requests in the project's own CSV, so that a workload with arrivals =
// "trace" replays them.
func (m *Measured) WriteTrace(w io.Writer) error {
	_, _, err := writeOwn(context.Background(), w, &recorded{m.Requests})
	return err
}

// recorded is a source of a record's requests.
type recorded struct{ left []Served }

func (r *recorded) next() (sim.Arrival, error) {
	if len(r.left) == 0 {
		return sim.Arrival{}, io.EOF
	}
	s := r.left[0]
	r.left = r.left[1:]
	return sim.Arrival{At: s.At, Prompt: s.Prompt, Output: s.Output, Content: s.Content}, nil
}

func (r *recorded) timed() bool              { return true }
func (r *recorded) warnings() []warn.Warning { return nil }
func (r *recorded) Close() error             { return nil }
func (r *recorded) rest() (int, error)       { return len(r.left), nil }
