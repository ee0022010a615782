package traces

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Percentiles are taken over the sorted values, linear between neighbours.
func TestDescribeAgainstSorting(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tokens := rapid.SliceOfN(rapid.IntRange(1, rows.MaxTokens), 1, 200).Draw(rt, "tokens")
		c := newCensus(KV{})
		var values []float64
		sum := 0.0
		for i, v := range tokens {
			c.add(sim.Arrival{At: des.Time(i) * des.Second, Prompt: v, Output: 1})
			values = append(values, float64(v))
			sum += float64(v)
		}
		d := c.describe("", "", true, false, nil)
		slices.Sort(values)
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*want {
				rt.Fatalf("%s = %v, want %v of %v", what, got, want, values)
			}
		}
		near("mean", d.Prompt.Mean, sum/float64(len(values)))
		q := &d.Prompt
		for percent, got := range map[float64]float64{0: q.Min, 1: q.P1, 5: q.P5, 25: q.P25, 50: q.P50,
			75: q.P75, 95: q.P95, 99: q.P99, 100: q.Max} {
			low, share := math.Modf(percent / 100 * float64(len(values)-1))
			high := values[min(int(low)+1, len(values)-1)]
			near(fmt.Sprintf("p%g", percent), got, values[int(low)]*(1-share)+high*share)
		}
		if len(values) > 1 {
			near("rate", d.Rate, 1)
			near("gap", d.Gap.P95, 1)
		}
	})
}

// A file with a set on every line does not take memory for each.
func TestDescribeBoundsItsSets(t *testing.T) {
	c := newCensus(KV{})
	for i := range 3 * mostSets {
		c.add(sim.Arrival{Prompt: 1, Output: 1, Set: strings.Repeat("x", i)})
	}
	d := c.describe("", "", false, false, nil)
	total := 0
	for _, s := range d.Sets {
		total += s.Requests
	}
	if len(d.Sets) != mostSets+1 || total != 3*mostSets {
		t.Errorf("%d sets of %d requests, want %d of %d", len(d.Sets), total, mostSets+1, 3*mostSets)
	}
}

// TestInterrupted ends what reads a trace with its context, and leaves no file.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const file = "testdata/own.csv"
	out := filepath.Join(t.TempDir(), "out.csv")
	_, described := Describe(ctx, file, "", KV{})
	_, drawn := DescribeWorkload(ctx, "w", DefaultSpec(), 1, KV{})
	_, _, converted := Convert(ctx, file, "", out)
	_, _, written := ConvertTo(ctx, io.Discard, file, "")
	for _, err := range []error{described, drawn, converted, written} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", out, err)
	}
}

func TestDescribeRefuses(t *testing.T) {
	for _, c := range []struct{ path, format, want string }{
		{"testdata/own.csv", "azur", `format = "azur": unknown`},
		{"testdata/own.csv", FormatAzure, "has no column TIMESTAMP"},
		{"testdata/none", "", "no such file"},
	} {
		_, err := Describe(t.Context(), c.path, c.format, KV{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s as %s: %v, want %q", c.path, c.format, err, c.want)
		}
	}
}

// Converting keeps every request and its time to the nanosecond.
func TestConvertKeepsRequests(t *testing.T) {
	for _, name := range []string{"azure2023.csv", "azure2024.csv", "burstgpt.csv", "mooncake.jsonl",
		"vidur.csv", "vidur_lengths.csv", "own.csv", "longbench"} {
		in, out := filepath.Join("testdata", name), filepath.Join(t.TempDir(), "out.csv")
		n, _, err := Convert(t.Context(), in, "", out)
		if err != nil {
			t.Fatal(err)
		}
		read := func(path, want string) (as []sim.Arrival, timed bool) {
			src, format, err := openTrace(path, wholeFile(""))
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			if as, err = readAll(src); err != nil {
				t.Fatal(err)
			}
			if want != "" && (format != want || len(src.warnings()) > 0) {
				t.Errorf("%s: format %s, warnings %q", path, format, src.warnings())
			}
			return as, src.timed()
		}
		before, timed := read(in, "")
		after, timedAfter := read(out, FormatCSV)
		if !reflect.DeepEqual(before, after) || timed != timedAfter || n != len(before) {
			t.Errorf("%s: %d requests, timed %v\n got %v\nwant %v", name, n, timedAfter, after, before)
		}
	}
}

func TestConvertTimesAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := des.Time(rapid.Int64Range(0, int64(rows.Latest)).Draw(rt, "time"))
		got, err := rows.Time("k", decimal(want), des.Second)
		if err != nil || got != want {
			rt.Fatalf("%s reads as %d, %v; want %d", decimal(want), got, err, want)
		}
	})
}

// A conversion that fails leaves what was there.
func TestConvertIsAtomic(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(in, "arrived_s,prompt_tokens,output_tokens\n0,1,1\n1,2")
	write(out, "precious")
	_, _, err := Convert(t.Context(), in, "", out)
	if err == nil || !strings.Contains(err.Error(), "in.csv:3") {
		t.Errorf("half-written input: %v", err)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "precious" {
		t.Errorf("output is %q, %v", text, err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("%d files left, %v; want 2", len(files), err)
	}
	if _, _, err := Convert(t.Context(), "testdata/own.csv", "",
		filepath.Join(dir, "none", "out.csv")); err == nil || !strings.Contains(err.Error(), "out.csv") {
		t.Errorf("no such folder: %v", err)
	}
	write(in, "arrived_s,prompt_tokens,output_tokens\n5,1,1\n")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{in: "the command reads or keeps",
		link: "a link that leads to no file", "/dev/full": "not a regular file",
		dir: "not a regular file"} {
		_, _, err := Convert(t.Context(), in, "", out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("to %s: %v, want %q", out, err, want)
		}
	}
	if text, err := os.ReadFile(in); err != nil ||
		string(text) != "arrived_s,prompt_tokens,output_tokens\n5,1,1\n" {
		t.Errorf("the input is now %q, %v", text, err)
	}
	var stream strings.Builder
	if _, _, err := ConvertTo(t.Context(), &stream, in, ""); err != nil ||
		stream.String() != "arrived_s,prompt_tokens,output_tokens,set\n0.000000000,1,1,\n" {
		t.Errorf("to a stream: %q, %v", stream.String(), err)
	}
}
