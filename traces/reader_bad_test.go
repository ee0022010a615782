package traces

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

func TestBadFiles(t *testing.T) {
	const (
		azure      = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
		own        = "arrived_s,prompt_tokens,output_tokens,set\n"
		burst      = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
		mooncake   = `{"timestamp": 0, "input_length": 10, "output_length": 5, "hash_ids": [0]}` + "\n"
		ownContent = "prompt_tokens,output_tokens,content\n"
		qasper     = `{"length": 100, "dataset": "qasper"}` + "\n"
	)
	for name, c := range map[string]struct {
		text, format string
		want         []string // parts of the one message
	}{
		"empty":         {"", "", []string{"f: empty file"}},
		"blank":         {"\n\n  \n", "", []string{"f: empty file"}},
		"only a header": {azure, "", []string{"f: no requests"}},
		"all failed": {burst + "1,GPT-4,5,0,5,API log\n", "",
			[]string{"f: no requests in it but 1 row of 0 tokens, never served"}},
		"unknown header": {"a,b,c\n1,2,3\n", "",
			[]string{"f:1:", "header", `"a,b,c"`, "no known format", "TIMESTAMP"}},
		"forced, no column": {"a,b,c\n1,2,3\n", FormatVidur,
			[]string{"f:1:", "has no column num_prefill_tokens"}},
		"column twice": {"prompt_tokens,output_tokens,prompt_tokens\n1,2,3\n", "",
			[]string{"f:1:", "prompt_tokens twice"}},
		"unknown JSON": {`{"a": 1}` + "\n", "", []string{"f:1:", "input_length (mooncake)"}},
		"half a CSV line": {azure + "2023-11-16 18:17:03,10,20\n2023-11-16 18:17:04,3", "",
			[]string{"f:3:", "2 fields", "3 columns", "cut short"}},
		"half a time": {azure + "2023-11-16 18:1", "", []string{"f:2:", "cut short"}},
		"half a JSON line": {mooncake + `{"timestamp": 5, "input_le`, "",
			[]string{"f:2:", "not valid JSON", "cut short"}},
		"half the first JSON": {`{"timestamp": 5, "input_le`, "",
			[]string{"f:1:", "not valid JSON", "cut short"}},
		"half a LongBench": {qasper + `{"context": "abc`, "",
			[]string{"f:2:", "not valid JSON", "cut short"}},
		"two JSON on a line": {qasper + strings.TrimSpace(qasper) + qasper, "",
			[]string{"f:2:", "not valid JSON"}},
		"JSON array":      {qasper + "[1]\n", "", []string{"f:2:", "not a JSON object"}},
		"negative tokens": {azure + "2023-11-16 18:17:03,-5,20\n", "", []string{"f:2:", `ContextTokens = "-5"`, "negative"}},
		"NaN tokens":      {azure + "2023-11-16 18:17:03,NaN,20\n", "", []string{"f:2:", `ContextTokens = "NaN"`, "not a whole number"}},
		"infinite tokens": {own + "0,Inf,20,a\n", "", []string{"f:2:", `prompt_tokens = "Inf"`}},
		"overflow": {own + "0,99999999999999999999999,20,a\n", "",
			[]string{"f:2:", "prompt_tokens", "more than"}},
		"float overflow": {own + "0,1e999,20,a\n", "",
			[]string{"f:2:", "prompt_tokens", "more than"}},
		"part of a token": {own + "0,1.5,20,a\n", "",
			[]string{"f:2:", `prompt_tokens = "1.5"`, "not a whole number"}},
		"no tokens": {own + "0,0,20,a\n", "",
			[]string{"f:2:", `prompt_tokens = "0"`, "at least 1"}},
		"no output": {own + "0,5,0,a\n", "",
			[]string{"f:2:", `output_tokens = "0"`, "at least 1"}},
		"no Mooncake output": {
			mooncake + `{"timestamp": 1, "input_length": 10, "output_length": 0}` + "\n", "",
			[]string{"f:2:", `output_length = "0"`, "at least 1"}},
		"never served": {azure + "2023-11-16 18:17:03,5,0\n2023-11-16 18:17:03,0,5\n", "",
			[]string{"f: no requests in it but 2 rows of 0 tokens"}},
		"empty value": {own + "0,,20,a\n", "",
			[]string{"f:2:", "prompt_tokens", "missing or empty"}},
		"word for a number": {own + "0,ten,20,a\n", "", []string{"f:2:", `prompt_tokens = "ten"`}},
		"NaN time": {own + "nan,1,20,a\n", "",
			[]string{"f:2:", `arrived_s = "nan"`, "not a time"}},
		"negative time": {own + "-1,1,20,a\n", "",
			[]string{"f:2:", `arrived_s = "-1"`, "negative"}},
		"time overflow": {own + "1e300,1,20,a\n", "",
			[]string{"f:2:", `arrived_s = "1e300"`, "later than"}},
		"calendar": {azure + "yesterday,1,20\n", "",
			[]string{"f:2:", `TIMESTAMP = "yesterday"`, "not a time like"}},
		"year": {azure + "9999-11-16 18:17:03,1,20\n", "",
			[]string{"f:2:", "outside the years"}},
		"disorder": {own + "1,1,20,a\n3,1,20,a\n2,1,20,a\n", "",
			[]string{"f:4:", `arrived_s = "2"`, "(3)", "sort the file by arrived_s"}},
		"open quote": {own + `0,1,20,"a` + "\n", "", []string{"f:2:", "not valid CSV"}},
		"Mooncake key missing": {`{"timestamp": 0, "input_length": 5}` + "\n", "",
			[]string{"f:1:", "output_length", "missing"}},
		"Mooncake list": {`{"timestamp": 0, "input_length": [5], "output_length": 1}` + "\n",
			"", []string{"f:1:", `input_length = "[5]"`}},
		"Mooncake hashes too few": {
			mooncake + `{"timestamp": 1, "input_length": 513, "output_length": 1, "hash_ids": [3]}` + "\n",
			"", []string{"f:2:", `hash_ids = "[3]"`, "1 id,", "input_length = 513 is 2 blocks of 512"}},
		"Mooncake hashes too many": {
			`{"timestamp": 1, "input_length": 512, "output_length": 1, "hash_ids": [3, 4]}` + "\n", "",
			[]string{"f:1:", `hash_ids = "[3 4]"`, "2 ids,", "is 1 block of 512"}},
		"Mooncake hash negative": {
			`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [3, -4]}` + "\n", "",
			[]string{"f:1:", `hash_ids = "-4"`, "negative"}},
		"Mooncake hash twice": {
			`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [3, 3]}` + "\n", "",
			[]string{"f:1:", `hash_ids = "3"`, "after 3 here and first above"}},
		"Mooncake hash after another": {
			`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}` + "\n" +
				`{"timestamp": 2, "input_length": 600, "output_length": 1, "hash_ids": [5, 2]}` + "\n", "",
			[]string{"f:2:", `hash_ids = "2"`, "after 5 here and after 1 above", "all before it"}},
		"Mooncake hash first and not": {
			`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [1, 2]}` + "\n" +
				`{"timestamp": 2, "input_length": 6, "output_length": 1, "hash_ids": [2]}` + "\n", "",
			[]string{"f:2:", `hash_ids = "2"`, "first here and after 1 above"}},
		"Mooncake hash no number": {
			`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [3, "a"]}` + "\n", "",
			[]string{"f:1:", `hash_ids`, "wrong type; a whole number is needed"}},
		"Mooncake hash no list": {
			`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": 3}` + "\n", "",
			[]string{"f:1:", `hash_ids = "number"`, "wrong type; a list is needed"}},
		"content no piece": {ownContent + "90,1,7-90\n", "",
			[]string{"f:2:", `content = "7-90"`, "id:tokens"}},
		"content without tokens": {ownContent + "90,1,7:0\n", "",
			[]string{"f:2:", `content = "7:0"`, "at least 1"}},
		"content too long": {ownContent + "90,1,7:90 8:1\n", "",
			[]string{"f:2:", `content = "8:1"`, "beyond the prompt, which has 90 tokens"}},
		"content after the answer": {ownContent + "90,1,>7 8:1\n", "",
			[]string{"f:2:", `content = ">7"`, "at the end"}},
		"no such set": {`{"length": 100, "dataset": "qaspar"}` + "\n", "", []string{"f:1:", `dataset = "qaspar"`, "did you mean qasper"}},
		"no set": {`{"length": 100}` + "\n", FormatLongBench,
			[]string{"f:1:", "dataset", "missing"}},
		"set is a number": {`{"length": 100, "dataset": 3}` + "\n", "", []string{"f:1:", `dataset = "number"`, "string"}},
		"no length": {`{"length": null, "dataset": "lcc"}` + "\n", FormatLongBench,
			[]string{"f:1:", "length", "missing"}},
		"zero length": {`{"length": 0, "dataset": "lcc"}` + "\n", "",
			[]string{"f:1:", `length = "0"`, "at least 1"}},
		"length overflow": {`{"length": 1073741824, "dataset": "lcc"}` + "\n", "",
			[]string{"f:1:", "length", "too long"}},
	} {
		r, _, err := newReader("f", strings.NewReader(c.text), wholeFile(c.format))
		if err == nil {
			_, err = readAll(r)
		}
		wantLineError(t, name, err, c.want)
	}
}

// wantLineError says where an error is not a line with all of these parts.
func wantLineError(t *testing.T, name string, err error, parts []string) {
	t.Helper()
	var e *LineError
	if !errors.As(err, &e) {
		t.Errorf("%s: error %v, want one of a line", name, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q lacks %q", name, err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %q is more than a line", name, err)
	}
}

func TestBadPaths(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ path, format, want string }{
		{filepath.Join(dir, "none.csv"), "", "no such file or folder"},
		{"longbenhc", "", `did you mean "longbench"`},
		{dir, "", "without .jsonl files"},
		{dir, FormatAzure, "only LongBench is read from a folder"},
	} {
		if _, _, err := openPath(c.path, wholeFile(c.format)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openPath(dir, wholeFile("")); err == nil ||
		!strings.Contains(err.Error(), "a.jsonl: empty file") {
		t.Errorf("folder with an empty file: %v", err)
	}
}

func TestFolderMixesItsFiles(t *testing.T) {
	read := func(datasets []string, seed uint64) []sim.Arrival {
		o := wholeFile("")
		o.datasets, o.order = datasets, des.Rand(seed, "traces.order")
		f, format, err := openPath("testdata/longbench", o)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		as, err := readAll(f)
		if err != nil || format != FormatLongBench {
			t.Fatal(format, err)
		}
		return as
	}
	count := func(as []sim.Arrival) map[string]int {
		n := map[string]int{}
		for _, a := range as {
			n[a.Set]++
		}
		return n
	}
	all := read(nil, 1)
	// qasper_e.jsonl samples qasper again and is left out.
	for set, want := range map[string]int{"qasper": 8, "lcc": 20, "dureader": 8, "hotpotqa": 8} {
		if got := count(all)[set]; got != want {
			t.Errorf("%d requests of %s, want %d", got, set, want)
		}
	}
	if n := len(count(all[:22])); n != 4 {
		t.Errorf("the first half has %d sets, want all 4: files must be mixed", n)
	}
	if !slices.Equal(all, read(nil, 1)) {
		t.Error("equal seeds give different orders")
	}
	if slices.Equal(all, read(nil, 2)) {
		t.Error("different seeds give the same order")
	}
	if some := count(read([]string{"lcc", "qasper"}, 1)); len(some) != 2 || some["lcc"] != 20 ||
		some["qasper"] != 8 {
		t.Errorf("kept %v, want lcc and qasper whole", some)
	}
	o := wholeFile("")
	o.datasets = []string{"trec"}
	f, _, err := openPath("testdata/longbench", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.next(); err == nil || !strings.Contains(err.Error(), "workload.datasets") {
		t.Errorf("a folder without the sets asked for: %v", err)
	}
}

// A line of a folder that is no object is an error, whether a request is drawn from it or not.
func TestFolderWithABadLine(t *testing.T) {
	dir := t.TempDir()
	row := `{"dataset":"lcc","length":900,"answers":["a"]}` + "\n"
	path := filepath.Join(dir, "lcc.jsonl")
	for _, bad := range []string{"garbage", row[:20], "\x00"} {
		if err := os.WriteFile(path, []byte(row+row+bad+"\n"+row), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := openPath(dir, wholeFile(""))
		if err == nil || !strings.Contains(err.Error(), path+":3: line = ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
