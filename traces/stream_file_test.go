package traces

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestStreamOfAFile(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Trace, s.Requests = "testdata/burstgpt.csv", 10 })
	if n := len(collect(t, s)); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
	if w := s.Warnings(); len(w) != 2 || !strings.Contains(w[0], "1 row left out") || !strings.Contains(w[1], "ended after 4 of 10") {
		t.Errorf("warnings %q", w)
	}
	if _, ok, err := s.Next(); ok || err != nil {
		t.Errorf("after the end: %v %v", ok, err)
	}
	if n := len(collect(t, open(t, 1, func(s *Spec) { s.Trace, s.Requests = "testdata/burstgpt.csv", 2 }))); n != 2 {
		t.Errorf("%d requests, want the 2 asked for", n)
	}
	if w := open(t, 1, func(*Spec) {}).Warnings(); len(w) != 0 {
		t.Errorf("the mix warns %q", w)
	}
}

// Of a trace no row is left out, or added, without a word.
func TestRowsLeftOutAreCounted(t *testing.T) {
	const burst, folder = "testdata/burstgpt.csv", "testdata/longbench"
	azure := filepath.Join(t.TempDir(), "azure.csv")
	rows := "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,5,0\n2023-11-16 18:17:04,5,1\n2023-11-16 18:17:05,0,7\n"
	if err := os.WriteFile(azure, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Spec)
		made   int
		want   []string // warnings, each by its beginning and its end
	}{
		"all":             {func(s *Spec) { s.Trace, s.Requests = burst, 0 }, 4, []string{"1 row left out that no service answered|" + burst}},
		"fewer":           {func(s *Spec) { s.Trace, s.Requests = burst, 2 }, 2, []string{"3 rows left out beyond workload.requests = 2|" + burst}},
		"just as many":    {func(s *Spec) { s.Trace, s.Requests = burst, 4 }, 4, []string{"1 row left out that|" + burst}},
		"never served":    {func(s *Spec) { s.Trace, s.Requests = azure, 0 }, 1, []string{"2 rows left out that no service answered|" + azure}},
		"all of a folder": {func(s *Spec) { s.Trace, s.Requests, s.Datasets = folder, 0, AllSets() }, 44, []string{"llama2 prompt tokens are estimated|" + folder}},
		"some of a folder": {func(s *Spec) { s.Trace, s.Requests, s.Datasets = folder, 10, AllSets() }, 10,
			[]string{"llama2 prompt tokens are estimated|" + folder, "34 rows left out beyond workload.requests = 10|" + folder}},
		"some sets of a file": {func(s *Spec) {
			s.Trace, s.Requests, s.Datasets = "testdata/longbench/lcc.jsonl", 0, []string{"lcc"}
		}, 20, []string{"llama2 prompt tokens|testdata/longbench/lcc.jsonl"}},
	} {
		s := open(t, 1, c.change)
		made, warnings := len(collect(t, s)), s.Warnings()
		fits := made == c.made && len(warnings) == len(c.want)
		for i := 0; fits && i < len(c.want); i++ {
			begin, end, _ := strings.Cut(c.want[i], "|")
			fits = strings.HasPrefix(warnings[i], begin) && strings.HasSuffix(warnings[i], ": "+end)
		}
		if !fits {
			t.Errorf("%s: %d requests and %q, want %d and %q", name, made, warnings, c.made, c.want)
		}
	}
}

func TestTimed(t *testing.T) {
	for trace, want := range map[string]bool{
		BuiltIn: false, "testdata/longbench": false, "testdata/vidur_lengths.csv": false, "testdata/vidur.csv": true,
		"testdata/mooncake.jsonl": true, "testdata/burstgpt.csv": true, "testdata/azure2024.csv": true,
	} {
		s := DefaultSpec()
		s.Trace = trace
		if timed, err := s.Timed(); err != nil || timed != want {
			t.Errorf("%s: timed %v, error %v", trace, timed, err)
		}
	}
}

// pipes are left open, so that no other has the number of one.
var pipes []*os.File

// What can be read once is read once, whoever opens it again; one that nobody writes to is said
// to be empty, and does not block.
func TestPipes(t *testing.T) {
	want := collect(t, open(t, 1, func(s *Spec) { s.Trace, s.Arrivals = "testdata/vidur.csv", ArrivalsTrace }))
	text, err := os.ReadFile("testdata/vidur.csv")
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	s := DefaultSpec()
	s.Trace, s.Rate, s.Requests, s.Arrivals = pipe, 0, 0, ArrivalsTrace
	if _, err := Open(s, 1); err == nil || err.Error() != "workload.trace: "+pipe+": empty; nobody wrote to it" {
		t.Errorf("nobody writes: %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pipes = append(pipes, r)
	s.Trace = fmt.Sprintf("/dev/fd/%d", r.Fd()) // as a shell names <(command)
	for range 3 {
		stream, err := Open(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := collect(t, stream); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if timed, err := s.Timed(); !timed || err != nil || Count(s) != len(want) {
		t.Errorf("timed %v, %v; %d requests", timed, err, Count(s))
	}
}

func TestDevicesAreRefused(t *testing.T) {
	for _, path := range []string{"/dev/zero", "/dev/null"} {
		_, err := Describe(path, "")
		if err == nil || err.Error() != path+": a terminal or a device; give a file, or pipe one into it" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Traces of every format are the same packed, as one archive or several on end, whatever their
// name; damaged ones, and those cut short, are an error at the file.
func TestPackedTraces(t *testing.T) {
	for _, name := range []string{"longbench/qasper.jsonl", "azure2024.csv", "mooncake.jsonl", "burstgpt.csv", "vidur.csv"} {
		plain := filepath.Join("testdata", name)
		text, err := os.ReadFile(plain)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Describe(plain, "")
		if err != nil {
			t.Fatal(err)
		}
		for kind, pack := range map[string]func(...[]byte) []byte{"gzip": gzipped, "zstd": zstandard} {
			path := filepath.Join(t.TempDir(), "trace")
			write := func(data []byte) {
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for _, data := range [][]byte{pack(text), pack(text[:len(text)/3], text[len(text)/3:])} {
				write(data)
				got, err := Describe(path, "")
				if err != nil {
					t.Fatalf("%s, %s: %v", name, kind, err)
				}
				got.Path, got.Warnings = plain, want.Warnings
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: %+v, want %+v", name, kind, got, want)
				}
				for _, end := range []int{len(data) - 1, len(data) * 2 / 3, 9} {
					write(data[:end])
					if _, err := Describe(path, ""); err == nil || !strings.HasPrefix(err.Error(), path) || !strings.Contains(err.Error(), kind+" data that are damaged or end too early") {
						t.Errorf("%s, %s, %d of %d bytes: %v", name, kind, end, len(data), err)
					}
				}
				wrong := slices.Clone(data)
				wrong[len(wrong)-6] ^= 0x10
				write(wrong)
				if _, err := Describe(path, ""); err == nil || !strings.HasPrefix(err.Error(), path) {
					t.Errorf("%s, %s, a bit flipped: %v", name, kind, err)
				}
			}
		}
	}
}

func gzipped(parts ...[]byte) []byte {
	var out bytes.Buffer
	for _, part := range parts {
		z := gzip.NewWriter(&out)
		z.Write(part)
		z.Close()
	}
	return out.Bytes()
}

func zstandard(parts ...[]byte) []byte {
	var out bytes.Buffer
	for _, part := range parts {
		z, err := zstd.NewWriter(&out)
		if err != nil {
			panic(err)
		}
		z.Write(part)
		z.Close()
	}
	return out.Bytes()
}

// A folder may have packed files; one that is there plain and packed is read once.
func TestFolderOfPackedFiles(t *testing.T) {
	dir := t.TempDir()
	entries, err := os.ReadDir("testdata/longbench")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		text, err := os.ReadFile(filepath.Join("testdata/longbench", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, e.Name())
		for _, f := range []struct {
			name string
			data []byte
			kept bool
		}{{name, text, i%3 != 1}, {name + ".gz", gzipped(text), i%3 != 2}, {name + ".zst", zstandard(text), true}} {
			if f.kept {
				if err := os.WriteFile(f.name, f.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want, err := Describe("testdata/longbench", "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Describe(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	got.Path, got.Warnings = want.Path, want.Warnings
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStreamOfAFolder(t *testing.T) {
	s := open(t, 1, func(s *Spec) { s.Trace, s.Output = "testdata/longbench", OutputChat })
	as := collect(t, s)
	if len(as) != 36 { // hotpotqa is not one of the paper's sets
		t.Errorf("%d requests, want 36", len(as))
	}
	chat := findSet(loadTable(), "dureader").output(OutputChat)
	shorter := false
	for _, a := range as {
		if a.Set == "dureader" && !slices.Contains(chat.quantiles, float64(a.Output)) {
			t.Errorf("dureader output %d was never one of the chat model", a.Output)
		}
		shorter = shorter || a.Output < 60
	}
	if !shorter {
		t.Error("no output below 60 tokens: chat lengths are not used")
	}
	if w := s.Warnings(); len(w) != 3 || !strings.HasPrefix(w[0], "8 rows left out of sets") || !strings.Contains(w[1], "estimated") {
		t.Errorf("warnings %q", w)
	}
}

func TestOpenFindsWhatIsWrong(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte("arrived_s,prompt_tokens,output_tokens\n0,x,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Trace = bad }, `bad.csv:2: prompt_tokens = "x"`},
		{func(s *Spec) { s.Trace = bad + ".gz" }, "no such file"},
		{func(s *Spec) { s.Trace, s.Arrivals = "testdata/longbench", ArrivalsTrace }, "has no times of its own"},
		{func(s *Spec) { s.Trace, s.Arrivals = "testdata/vidur_lengths.csv", ArrivalsTrace }, "has no times of its own"},
		{func(s *Spec) { s.Trace = "testdata/longbench/hotpotqa.jsonl" }, `no requests of workload.datasets in it, but 8 of others such as "hotpotqa"`},
	} {
		spec := DefaultSpec()
		c.change(&spec)
		if _, err := Open(spec, 1); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "workload.trace: ") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A file whose times run back is of use when its times are not used.
func TestDisorderMattersOnlyToReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte("arrived_s,prompt_tokens,output_tokens\n9,5,1\n2,6,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := len(collect(t, open(t, 1, func(s *Spec) { s.Trace = path }))); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	s := open(t, 1, func(s *Spec) { s.Trace, s.Arrivals = path, ArrivalsTrace })
	if _, _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // an error stays
		if _, ok, err := s.Next(); ok || err == nil || !strings.Contains(err.Error(), "t.csv:3") {
			t.Errorf("replayed: %v %v", ok, err)
		}
	}
}
