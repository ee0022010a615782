package pattern

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func drawHead(t *rapid.T, most int) Head {
	return Head{rapid.SampledFrom(Kinds()).Draw(t, "pattern"),
		rapid.IntRange(1, most).Draw(t, "first"), rapid.IntRange(1, most).Draw(t, "second")}
}

// naive counts row by row what a pattern keeps, by the words of the paper.
func naive(h Head, row float64) float64 {
	a, b := float64(h.A), float64(h.B)
	switch h.Kind {
	case VerticalSlash:
		a += slashColumns * b * math.Max(1, row/scatterFrom)
	case BlockSparse:
		a *= 64
	default:
		a += b
	}
	return math.Min(row, a)
}

// Pairs is the sum of the rows that naive counts, but for the half key by which the middle of a
// row's own length differs from it.
func TestPairsAgainstRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHead(t, 5000)
		prefix := rapid.IntRange(0, 500_000).Draw(t, "prefix")
		query := rapid.IntRange(1, 5000).Draw(t, "query")
		sum := 0.0
		for row := range query {
			r := float64(prefix+row) + 0.5
			if got, want := h.Kept(r), naive(h, r); math.Abs(got-want) > 1e-6*want {
				t.Fatalf("%s keeps %g keys of row %g, counted %g", h, got, r, want)
			}
			sum += naive(h, r)
		}
		if got := h.Pairs(query, prefix); math.Abs(got-sum) > 1e-9*sum+float64(1) {
			t.Fatalf("%s: %g pairs of %d + %d, rows have %g", h, got, prefix, query, sum)
		}
	})
}

// A pattern that keeps more than a row has is dense.
func TestPairsBeyondTheRow(t *testing.T) {
	dense, _ := Published(Dense)
	rapid.Check(t, func(t *rapid.T) {
		prefix, query := rapid.IntRange(0, 1<<20).Draw(t, "prefix"),
			rapid.IntRange(1, 1<<20).Draw(t, "query")
		want := float64(query)*float64(prefix) + float64(query)*float64(query)/2
		if got := dense.Pairs(query, prefix); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("dense has %g pairs, want %g", got, want)
		}
		for _, kind := range Kinds() {
			h := Head{kind, prefix + query, prefix + query}
			if got := h.Pairs(query, prefix); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("%s of %d + %d tokens has %g pairs, dense %g", h, prefix, query, got, want)
			}
		}
	})
}

// MInference Fig. 12: more than 90 % sparse from 200K tokens, more than 95 % from 500K.
func TestPublishedSparsity(t *testing.T) {
	for _, kind := range []Kind{AShape, BlockSparse} {
		h, _ := Published(kind)
		for tokens, bound := range map[int]float64{200_000: 0.90, 500_000: 0.95} {
			if got := 1 - h.Density(tokens); got <= bound {
				t.Errorf("%s is %.3f sparse at %d tokens, want more than %g", h, got, tokens, bound)
			}
		}
	}
}

func TestNamedMixes(t *testing.T) {
	for _, name := range NamedMixes() {
		m, err := Named(name, 32)
		if err != nil {
			t.Fatal(err)
		}
		heads := 0.0
		for _, g := range m.Layer(7) {
			if err := g.check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			heads += g.Heads
		}
		if math.Abs(heads-32) > 1e-9 {
			t.Errorf("%s: a layer of 32 heads has %g", name, heads)
		}
	}
	if _, err := Named("llama3", 32); err == nil || !strings.Contains(err.Error(), "llama3-8b-262k") {
		t.Errorf("unknown mix: %v", err)
	}
	all := 0.0
	for _, g := range Counts("llama3-8b-262k") {
		all += g.Heads
	}
	if all != 32*32 {
		t.Errorf("counts of %g heads, the model has 1024", all)
	}
}

func TestFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := make(Table, rapid.IntRange(1, 4).Draw(t, "layers"))
		heads := rapid.IntRange(1, 12).Draw(t, "heads")
		for layer := range table {
			for range heads {
				kind := rapid.SampledFrom([]Kind{AShape, VerticalSlash, BlockSparse}).Draw(t, "pattern")
				h := Head{kind, rapid.IntRange(1, 9999).Draw(t, "first"),
					rapid.IntRange(1, 9999).Draw(t, "second")}
				table[layer] = append(table[layer], Assigned{h, rapid.Float64Range(0, 1e9).Draw(t, "score")})
			}
		}
		back, err := Parse("f.json", table.Encode())
		if err != nil || !reflect.DeepEqual(back, table) {
			t.Fatalf("%v: %v became %v", err, table, back)
		}
		m, err := back.Mix("f.json", len(table), heads)
		if err != nil {
			t.Fatal(err)
		}
		for layer := range table {
			n := 0.0
			for _, g := range m.Layer(layer) {
				n += g.Heads
			}
			if n != float64(heads) {
				t.Fatalf("layer %d has %g heads, want %d", layer, n, heads)
			}
		}
	})
}

// A file as published, of two layers with two heads each.
func TestPublishedFormat(t *testing.T) {
	table, err := Parse("f.json", []byte(`[{"0": ["vertical_and_slash", 1000, 6096, 336], "1": ["stream_llm", 1024, 4096, 0.5]},
{"1": ["block_sparse", 100, 0, 1], "0": ["vertical_and_slash", 30, 800, 2]}]`))
	want := Table{{{Head{VerticalSlash, 1000, 6096}, 336}, {Head{AShape, 1024, 4096}, 0.5}},
		{{Head{VerticalSlash, 30, 800}, 2}, {Head{BlockSparse, 100, 0}, 1}}}
	if err != nil || !reflect.DeepEqual(table, want) {
		t.Errorf("%v, %v", table, err)
	}
}

// Errors are one line with file, layer and head; testdata/errors.txt keeps them.
func TestFileErrors(t *testing.T) {
	head := `["vertical_and_slash", 1, 1, 0]`
	var out strings.Builder
	for _, text := range []string{
		``, `{}`, `[]`, `[{}]`,
		`[{"0": ` + head + `}, {"0": ` + head + `, "1": ` + head + `}]`,
		`[{"0": ` + head + `, "2": ` + head + `}]`,
		`[{"00": ` + head + `}]`,
		`[{"0": ["vertical_and_slash", 1, 1]}]`,
		`[{"0": [7, 1, 1, 0]}]`,
		`[{"0": ["diagonal", 1, 1, 0]}]`,
		`[{"0": ["vertical_and_slash", 0, 1, 0]}]`,
		`[{"0": ["vertical_and_slash", 1, 0, 0]}]`,
		`[{"0": ["vertical_and_slash", 1, 1.5, 0]}]`,
		`[{"0": ["vertical_and_slash", 1, 1, "low"]}]`,
		`[{"0": ["block_sparse", -4, 0, 0]}]`,
		`[{"0": ["stream_llm", 1, 4000000000, 0]}]`,
	} {
		_, err := Parse("f.json", []byte(text))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: want an error of one line, got %v", text, err)
			continue
		}
		fmt.Fprintf(&out, "%s\n\t%v\n", text, err)
	}
	table, err := Parse("f.json", []byte(`[{"0": `+head+`}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range [][2]int{{2, 1}, {1, 2}} {
		_, err := table.Mix("f.json", of[0], of[1])
		fmt.Fprintf(&out, "for %d layers of %d heads\n\t%v\n", of[0], of[1], err)
	}
	path := filepath.Join("testdata", "errors.txt")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != out.String() {
		t.Errorf("%v: got\n%s", err, out.String())
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`[{"0": ["vertical_and_slash", 1000, 6096, 336]}]`))
	f.Add([]byte(`[{"0": ["block_sparse", 100, 0, 1], "1": ["stream_llm", 1, 1, 1e9]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Parse("f.json", text)
		if err != nil {
			return
		}
		back, err := Parse("f.json", table.Encode())
		if err != nil || !reflect.DeepEqual(back, table) {
			t.Fatalf("%v: %v became %v", err, table, back)
		}
	})
}
