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

	"github.com/sparseserve/sparseserve/internal/warn"
)

// pipes are left open, so that no other has the number of one.
var pipes []*os.File

// A source that can be read only once is read once, even if it is opened again. A pipe without a
// writer is reported as empty and does not block.
func TestPipes(t *testing.T) {
	want := collect(t, open(t, 1, func(s *Spec) {
		s.Trace, s.Arrivals = "testdata/vidur.csv",
			ArrivalsTrace
	}))
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
	if _, err := Open(s, 1); err == nil || err.Error() != "workload.trace: "+pipe+
		": empty; nothing was written to it" {
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
	if has, err := s.Traits(); !has.Timed || err != nil || Count(s) != len(want) {
		t.Errorf("timed %v, %v; %d requests", has.Timed, err, Count(s))
	}
}

func TestDevicesAreRefused(t *testing.T) {
	for _, path := range []string{"/dev/zero", "/dev/null"} {
		_, err := Describe(t.Context(), path, "", KV{})
		if err == nil || err.Error() != path+
			": a terminal or a device; give a file, or pipe one into it" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Traces of every format are the same packed, as one archive or several on end, whatever their
// name; damaged ones, and those cut short, are an error at the file.
func TestPackedTraces(t *testing.T) {
	for _, name := range []string{"longbench/qasper.jsonl", "azure2024.csv", "mooncake.jsonl",
		"burstgpt.csv", "vidur.csv"} {
		plain := filepath.Join("testdata", name)
		text, err := os.ReadFile(plain)
		if err != nil {
			t.Fatal(err)
		}
		want, err := Describe(t.Context(), plain, "", KV{})
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
				got, err := Describe(t.Context(), path, "", KV{})
				if err != nil {
					t.Fatalf("%s, %s: %v", name, kind, err)
				}
				got.Path, got.Warnings = plain, want.Warnings
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s, %s: %+v, want %+v", name, kind, got, want)
				}
				for _, end := range []int{len(data) - 1, len(data) * 2 / 3, 9} {
					write(data[:end])
					_, err := Describe(t.Context(), path, "", KV{})
					if err == nil || !strings.HasPrefix(err.Error(), path) ||
						!strings.Contains(err.Error(), "damaged "+kind+" data: ") {
						t.Errorf("%s, %s, %d of %d bytes: %v", name, kind, end, len(data), err)
					}
				}
				wrong := slices.Clone(data)
				wrong[len(wrong)-6] ^= 0x10
				write(wrong)
				_, err = Describe(t.Context(), path, "", KV{})
				if err == nil || !strings.HasPrefix(err.Error(), path) {
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
		}{{name, text, i%3 != 1}, {name + ".gz", gzipped(text), i%3 != 2},
			{name + ".zst", zstandard(text), true}} {
			if f.kept {
				if err := os.WriteFile(f.name, f.data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	want, err := Describe(t.Context(), "testdata/longbench", "", KV{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Describe(t.Context(), dir, "", KV{})
	if err != nil {
		t.Fatal(err)
	}
	got.Path, got.Warnings = want.Path, want.Warnings
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// What is wrong with a file behind the requests that are read is said, of every kind of file,
// packed and not: data cut short, a check sum, a byte, what follows the archive. A sound file has
// no such warning.
func TestDamageBehindTheRequests(t *testing.T) {
	conversation := `{"conversations":[{"from":"human","value":"hello"},{"from":"gpt","value":"yes"}]}`
	row := `{"timestamp":1,"input_length":900,"output_length":9,"hash_ids":[1,2]}`
	long := `{"dataset":"lcc","length":900,"answers":["a"]}`
	const rows = 20000 // more than what is read ahead
	join := func(begin, one, between, end string) string {
		return begin + strings.Repeat(one+between, rows-1) + one + end
	}
	for name, text := range map[string]string{
		"own.csv": join("arrived_s,prompt_tokens,output_tokens\n", "1,900,9", "\n", "\n"),
		"vidur.csv": join("arrived_at,num_prefill_tokens,num_decode_tokens\n", "1,900,9", "\n",
			"\n"),
		"moon.jsonl":   join("", row, "\n", "\n"),
		"lcc.jsonl":    join("", long, "\n", "\n"),
		"talks.json":   join("[", conversation, ",", "]\n"),
		"talks.jsonl":  join("", conversation, "\n", "\n"),
		"endless.json": join("[", conversation, ",\n", "]"),
	} {
		packed := string(gzipped([]byte(text)))
		at := len(text) / 4 * 3
		wrong := text[:at] + strings.Replace(text[at:], "900", "9#0}", 1)
		wrong = wrong[:at] + strings.Replace(wrong[at:], "hello\"", "hello", 1)
		other := []byte(packed)
		other[len(other)*2/3] ^= 0x55
		check := []byte(packed)
		check[len(check)-6] ^= 0x55
		for kind, data := range map[string]string{"sound": text, "sound gzip": packed,
			"a gzip cut short": packed[:len(packed)*2/3], "a gzip without its end": packed[:len(packed)-4],
			"a byte": string(other), "a check sum": string(check), "garbage behind": packed + "garbage",
			"half another behind": packed + packed[:len(packed)/2], "a row": wrong,
			"a row in a gzip": string(gzipped([]byte(wrong))), "cut short": text[:len(text)-7]} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			s := open(t, 1, func(s *Spec) {
				s.Trace, s.Requests, s.Arrivals, s.Rate = path, 2, ArrivalsPoisson, 1
			})
			if n := len(all(t, s)); n != 2 {
				t.Fatalf("%s, %s: %d requests", name, kind, n)
			}
			said := strings.Join(warn.Texts(s.Warnings()), "\n")
			warns := strings.Contains(said, "damaged behind the requests that are read: "+path) ||
				kind == "cut short" && strings.Contains(said, "the last line has no line end: "+path)
			if sound := strings.HasPrefix(kind, "sound"); warns == sound {
				t.Errorf("%s, %s: %s", name, kind, said)
			}
		}
	}
}
