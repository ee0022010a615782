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
	"github.com/sparseserve/sparseserve/traces/rows"
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
		line         int
		key, value   string // as the error has them
	}{
		"empty":             {"", "", 0, "", ""},
		"blank":             {"\n\n  \n", "", 0, "", ""},
		"only a header":     {azure, "", 0, "", ""},
		"all failed":        {burst + "1,GPT-4,5,0,5,API log\n", "", 0, "", ""},
		"unknown header":    {"a,b,c\n1,2,3\n", "", 1, "header", "a,b,c"},
		"forced, no column": {"a,b,c\n1,2,3\n", FormatVidur, 1, "header", "a,b,c"},
		"column twice": {
			"prompt_tokens,output_tokens,prompt_tokens\n1,2,3\n", "", 1, "header",
			"prompt_tokens,output_tokens,prompt_tokens"},
		"unknown JSON": {`{"a": 1}` + "\n", "", 1, "keys", "a"},
		"half a CSV line": {
			azure + "2023-11-16 18:17:03,10,20\n2023-11-16 18:17:04,3", "", 3, "line",
			"2023-11-16 18:17:04,3"},
		"half a time":         {azure + "2023-11-16 18:1", "", 2, "line", "2023-11-16 18:1"},
		"half a JSON line":    {mooncake + `{"timestamp": 5, "input_le`, "", 2, "", ""},
		"half the first JSON": {`{"timestamp": 5, "input_le`, "", 1, "", ""},
		"half a LongBench":    {qasper + `{"context": "abc`, "", 2, "", ""},
		"JSON array":          {qasper + "[1]\n", "", 2, "[0]", "1"},
		"negative tokens": {
			azure + "2023-11-16 18:17:03,-5,20\n", "", 2, "ContextTokens", "-5"},
		"NaN tokens": {
			azure + "2023-11-16 18:17:03,NaN,20\n", "", 2, "ContextTokens", "NaN"},
		"infinite tokens": {own + "0,Inf,20,a\n", "", 2, "prompt_tokens", "Inf"},
		"overflow": {
			own + "0,99999999999999999999999,20,a\n", "", 2, "prompt_tokens", "99999999999999999999999"},
		"float overflow":  {own + "0,1e999,20,a\n", "", 2, "prompt_tokens", "1e999"},
		"part of a token": {own + "0,1.5,20,a\n", "", 2, "prompt_tokens", "1.5"},
		"no tokens":       {own + "0,0,20,a\n", "", 2, "prompt_tokens", "0"},
		"no output":       {own + "0,5,0,a\n", "", 2, "output_tokens", "0"},
		"no Mooncake output": {
			mooncake + `{"timestamp": 1, "input_length": 10, "output_length": 0}` +
				"\n", "", 2, "output_length", "0"},
		"never served": {
			azure + "2023-11-16 18:17:03,5,0\n2023-11-16 18:17:03,0,5\n", "", 0, "", ""},
		"empty value":       {own + "0,,20,a\n", "", 2, "prompt_tokens", ""},
		"word for a number": {own + "0,ten,20,a\n", "", 2, "prompt_tokens", "ten"},
		"NaN time":          {own + "nan,1,20,a\n", "", 2, "arrived_s", "nan"},
		"negative time":     {own + "-1,1,20,a\n", "", 2, "arrived_s", "-1"},
		"time overflow":     {own + "1e300,1,20,a\n", "", 2, "arrived_s", "1e300"},
		"calendar":          {azure + "yesterday,1,20\n", "", 2, "TIMESTAMP", "yesterday"},
		"year": {
			azure + "9999-11-16 18:17:03,1,20\n", "", 2, "TIMESTAMP", "9999-11-16 18:17:03"},
		"disorder":   {own + "1,1,20,a\n3,1,20,a\n2,1,20,a\n", "", 4, "arrived_s", "2"},
		"open quote": {own + `0,1,20,"a` + "\n", "", 2, "", ""},
		"Mooncake key missing": {
			`{"timestamp": 0, "input_length": 5}` + "\n", "", 1, "output_length", ""},
		"Mooncake list": {
			`{"timestamp": 0, "input_length": [5], "output_length": 1}` +
				"\n", "", 1, "input_length", "[5]"},
		"Mooncake hashes too few":  {mooncake + `{"timestamp": 1, "input_length": 5000, "output_length": 1, "hash_ids": [3]}` + "\n", "", 2, "hash_ids", "[3]"},
		"Mooncake hashes too many": {`{"timestamp": 1, "input_length": 4, "output_length": 1, "hash_ids": [3, 4]}` + "\n", "", 1, "hash_ids", "[3, 4]"},
		"Mooncake hash negative":   {`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [3, -4]}` + "\n", "", 1, "hash_ids", "[3, -4]"},
		"Mooncake hash no number":  {`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": [3, "a"]}` + "\n", "", 1, "hash_ids", `[3, "a"]`},
		"Mooncake hash no list":    {`{"timestamp": 1, "input_length": 600, "output_length": 1, "hash_ids": 3}` + "\n", "", 1, "hash_ids", "3"},
		"content no piece":         {ownContent + "90,1,7-90\n", "", 2, "content", "7-90"},
		"content without tokens":   {ownContent + "90,1,7:0\n", "", 2, "content", "7:0"},
		"content too long":         {ownContent + "90,1,7:90 8:1\n", "", 2, "content", "8:1"},
		"content after the answer": {ownContent + "90,1,>7 8:1\n", "", 2, "content", ">7"},
		"no such set": {
			`{"length": 100, "dataset": "qaspar"}` + "\n", "", 1, "dataset", "qaspar"},
		"no set": {`{"length": 100}` + "\n", FormatLongBench, 1, "keys", "length"},
		"set is a number": {
			`{"length": 100, "dataset": 3}` + "\n", "", 1, "dataset", "3"},
		"no length": {
			`{"length": null, "dataset": "lcc"}` + "\n", FormatLongBench, 1, "length", ""},
		"zero length": {`{"length": 0, "dataset": "lcc"}` + "\n", "", 1, "length", "0"},
		"length overflow": {
			`{"length": 1073741824, "dataset": "lcc"}` + "\n", "", 1, "length", "1073741824"},
	} {
		r, _, err := sourceOf("f", c.text, wholeFile(c.format))
		if err == nil {
			_, err = readAll(r)
		}
		wantLineError(t, name, err, c.line, c.key, c.value)
	}
}

// The error of a file in no known format begins with the cure.
func TestUnknownHeadersNameTheCure(t *testing.T) {
	for text, cure := range map[string]string{
		"arrived,prompt,output\n1,2,3\n": `f:1: header = "arrived,prompt,output": rename the columns ` +
			"to arrived_s,prompt_tokens,output_tokens, or to those of another format: ",
		`{"a": 1}` + "\n": `f:1: keys = "a": rename the keys to arrived_s,prompt_tokens,output_tokens, `,
	} {
		if _, _, err := sourceOf("f", text, wholeFile("")); err == nil ||
			!strings.HasPrefix(err.Error(), cure) {
			t.Errorf("got %v\nwant %s", err, cure)
		}
	}
}

// wantLineError holds an error against its place in file f.
func wantLineError(t *testing.T, name string, err error, line int, key, value string) {
	t.Helper()
	var e *rows.Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("%s: error %v, want one of a line", name, err)
	case e.File != "f" || e.Line != line || e.Key != key || e.Value != value && value != "*":
		t.Errorf("%s: %v, want line %d: %s = %q", name, err, line, key, value)
	case strings.Contains(err.Error(), "\n"):
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
		if _, _, err := openTrace(c.path, wholeFile(c.format)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openTrace(dir, wholeFile("")); err == nil ||
		!strings.Contains(err.Error(), "a.jsonl: empty file") {
		t.Errorf("folder with an empty file: %v", err)
	}
}

func TestFolderMixesItsFiles(t *testing.T) {
	read := func(datasets []string, seed uint64) []sim.Arrival {
		o := wholeFile("")
		o.sets, o.order = datasets, des.Rand(seed, "traces.order")
		f, format, err := openTrace("testdata/longbench", o)
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
	o.sets = []string{"trec"}
	f, _, err := openTrace("testdata/longbench", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.next(); err == nil || !strings.Contains(err.Error(), "longbench.datasets") {
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
		_, _, err := openTrace(dir, wholeFile(""))
		if err == nil || !strings.HasPrefix(err.Error(), path+":3: not valid JSON") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
