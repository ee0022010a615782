package records

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
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
// the content. Requests may be in any order. Of several runs in a file, as SGLang's bench_serving
// and vllm bench serve --append-result append them, the last is read, with a note.
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
	if err == nil && m.Figures == nil {
		err = m.order(f.Name, all)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// note adds a sentence to the record's notes.
func (m *Record) note(format string, values ...any) {
	m.Notes = append(m.Notes, fmt.Sprintf(format, values...))
}

// order sorts the answered requests by arrival and moves the first to 0.
func (m *Record) order(file string, all []sent) error {
	n := len(all)
	all = slices.DeleteFunc(all, func(s sent) bool { return s.failed })
	if m.Failed = n - len(all); len(all) == 0 {
		problem := "no requests in it"
		if m.Failed > 0 {
			problem += " but " + rows.Plural(m.Failed, "failed one")
		}
		return &rows.Error{File: file, Problem: problem}
	}
	identifyTexts(all)
	slices.SortStableFunc(all, func(a, b sent) int { return cmp.Compare(a.At, b.At) })
	for _, s := range all {
		s.At -= all[0].At
		m.Requests = append(m.Requests, s.Request)
	}
	return nil
}

// notJSON are numbers as Python writes them and JSON has not: of no limit, and of no samples.
var notJSON = regexp.MustCompile(`([:,\[]\s*)(?:-?Infinity|NaN)\b`)

// decode returns the requests in file order. JSON is detected by its first non-blank character.
func (m *Record) decode(f *rows.File) ([]sent, error) {
	if f.IsJSON() {
		text, err := f.All()
		if err != nil {
			return nil, err
		}
		f = rows.Text(f.Name, notJSON.ReplaceAll(text, []byte("${1}null")))
	}
	from, err := rows.NewReader(f)
	if err != nil {
		return nil, err
	}
	whole := from.Has("benchmarks|experiments|ttfts|itls") // all requests are in one object
	for i := range tools {
		t := &tools[i]
		if !whole && from.JSON() == (t.format != formatCSV) && from.Has(t.is) {
			m.Format = t.format
			return m.readRequests(from, t)
		}
	}
	if !from.JSON() {
		return nil, from.Fault(rows.Wrong("header", strings.Join(from.Names, ","), known))
	}
	return m.readRun(from)
}

// readRequests reads a record of requests of one tool.
func (m *Record) readRequests(from *rows.Reader, t *tool) (all []sent, err error) {
	var clients float64
	if t.start == "" {
		if clients, err = llmPerfClients(from.Name); err != nil {
			return nil, from.Fault(err)
		}
	}
	prompts := identity{}
	for {
		rec, err := from.Record()
		if err == io.EOF {
			if t.start == "" {
				m.made(load{clients: clients}, all)
			}
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if t.warmup != "" && rec.Text(t.warmup) == "warmup" {
			continue
		}
		s, err := t.request(rec)
		if err == nil && !s.failed && t.format == formatCSV {
			s.Content, err = prompts.of(from, rec, s.Prompt)
		}
		if err != nil {
			return nil, from.Fault(err)
		}
		all = append(all, s)
	}
}

// llmPerfClients returns the clients of an llmperf record, which the file beside it has.
func llmPerfClients(file string) (clients float64, err error) {
	const requests, summary, key = "_individual_responses.json", "_summary.json",
		"num_concurrent_requests"
	name, named := strings.CutSuffix(file, requests)
	beside := name + summary
	if text, err := files.ReadText(beside); named && err == nil {
		rec, err := rows.NewObject(text)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", beside, err)
		}
		clients = limit(rec, key)
	}
	if clients == 0 {
		err = lacking("llmperf writes it into "+filepath.Base(beside)+": put that file beside this one, "+
			"which ends in "+requests, key)
	}
	return clients, err
}

// readRun reads the last of the runs of a file, each a JSON object.
func (m *Record) readRun(values *rows.Reader) (all []sent, err error) {
	var last *rows.Object
	n := 0
	for ; ; n++ {
		rec, err := values.Record()
		if err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		last = rec.(*rows.Object)
	}
	if n > 1 {
		m.note("The file has %d runs. The last, of line %d, is compared. To choose another, give its "+
			"line: sed -n 1p FILE | sparseserve compare -", n, values.Line())
	}
	keys, a := last.Names(), layoutOf(last)
	switch detailed := slices.Contains(keys, "ttfts") || slices.Contains(keys, "itls"); {
	case slices.Contains(keys, "benchmarks"):
		m.Format = formatGuideLLM
		all, err = readGuideLLM(last)
	case slices.Contains(keys, "experiments"):
		m.Format = formatGenAIPerf
		all, err = m.readGenAIPerf(last)
	case a == nil && !detailed:
		err = rows.Wrong("keys", strings.Join(keys, ","), known)
	default:
		m.Format = formatVLLM
		if a != nil {
			m.Format = a.format
		}
		if strings.HasPrefix(last.Text("backend"), formatSGLang) { // its client, whatever the server
			m.Format = formatSGLang
		}
		if detailed {
			all, err = m.readVLLM(last)
		} else {
			err = m.readAggregates(last, a)
		}
	}
	if err != nil {
		return nil, values.Fault(err)
	}
	return all, nil
}
