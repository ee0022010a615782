package calibrate

import (
	"bytes"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/internal/files"
)

// drawSamples makes a file of any points and times.
func drawSamples(t *rapid.T) *Samples {
	text := rapid.StringMatching(`[a-zA-Z0-9,"():. ]{0,20}`)
	s := &Samples{Origin: fakeOrigin}
	s.Origin.Host, s.Origin.Date = oneLine(text.Draw(t, "host")), "2026-01-02"
	all := points(rapid.SampledFrom([]Plan{Full, Quick}).Draw(t, "plan"), fakeLimits)
	times := rapid.SliceOfN(rapid.Float64Range(1e-7, 10), 1, 20)
	from := rapid.IntRange(0, len(all)).Draw(t, "from")
	for _, p := range all[from:min(len(all), from+30)] {
		r := Record{Point: p}
		for _, x := range times.Draw(t, "samples") {
			r.Samples = append(r.Samples, asWritten(x))
		}
		s.Records = append(s.Records, r)
	}
	return s
}

func TestSamplesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSamples(t)
		got, err := ParseSamples("x.csv", want.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Records) != len(want.Records) || got.Origin != want.Origin {
			t.Fatalf("%d records of %+v, wrote %d of %+v", len(got.Records), got.Origin, len(want.Records),
				want.Origin)
		}
		for i, r := range want.Records {
			if !reflect.DeepEqual(got.Records[i], r) {
				t.Fatalf("read %+v, wrote %+v", got.Records[i], r)
			}
		}
	})
}

// Each edit of a good file is one mistake; the error names its line.
func TestSamplesErrors(t *testing.T) {
	s := &Samples{Origin: fakeOrigin, Records: []Record{
		{point(probeH2D, "", 4*mib), []float64{1e-3, 2e-3, 3e-3}},
		{point(probeLinears, "llama2-7b", 64), []float64{1e-4}},
	}}
	good := string(s.Encode())
	for _, c := range []struct{ name, old, new, want string }{
		{"another file", "# sparseserve calibration samples, format 1", "probe", "x.csv:1"},
		{"another format", "format 1", "format 2", "x.csv:1"},
		{"missing origin", "# driver: 580.1\n", "", `x.csv:4: want "driver"`},
		{"header", "median_us", "mean_us", "x.csv:11"},
		{"unknown probe", "link.h2d", "link.h3d", `x.csv:12: unknown probe "link.h3d"`},
		{"unknown axis", "bytes=4194304", "byte=4194304", "x.csv:12"},
		{"no number", "bytes=4194304", "bytes=4M", `want a whole number, got "4M"`},
		{"missing axis", "bytes=4194304", "", "x.csv:12"},
		{"missing shape", "linears,llama2-7b", "linears,", "x.csv:13"},
		{"unknown shape", "linears,llama2-7b", "linears,llama9", "llama9"},
		{"wrong median", "2000,1000,3000", "2500,1000,3000",
			"x.csv:12: link.h2d bytes=4194304: median_us"},
		{"negative sample", "1000 2000 3000", "1000 -2000 3000", `got "-2000"`},
		{"no samples", "1000 2000 3000", "", "no samples"},
		{"a point twice", "linears,llama2-7b,tokens=64,100,100,100,100",
			"link.h2d,,bytes=4194304,100,100,100,100", "x.csv:13: link.h2d bytes=4194304 appears twice"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: %q is not in\n%s", c.name, c.old, good)
		}
		if _, err := ParseSamples("x.csv", []byte(text)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// The committed samples are as the program writes them.
func TestCommittedSamplesAreCanonical(t *testing.T) {
	path := filepath.Join("..", "hw", "kernels", "hopper.csv.gz")
	data, err := files.ReadResult(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSamples(path, data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(s.Encode(), data) {
		t.Error("writing the samples again changes the file")
	}
	if len(data) > 1<<20 {
		t.Errorf("%d bytes, want at most 1 MiB", len(data))
	}
}

func FuzzParseSamples(f *testing.F) {
	s := &Samples{Origin: fakeOrigin, Records: []Record{
		{point(probeH2D, "", 4*mib), []float64{1e-3, 2e-3}},
		{point(probePrefill, "llama3-8b", 512, 0), []float64{1e-4, 1.5e-4, 9e-5}},
	}}
	f.Add(s.Encode())
	f.Add([]byte("# sparseserve calibration samples, format 1\n# plan: \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := ParseSamples("x.csv", data)
		if err != nil {
			return
		}
		again, err := ParseSamples("x.csv", got.Encode())
		if err != nil {
			t.Fatalf("what was read does not read back: %v", err)
		}
		if len(again.Records) != len(got.Records) || again.Origin.differs(got.Origin) != "" {
			t.Fatal("what was read changes when written")
		}
	})
}

// Work under the clock that the card lets it have counts by its mean, all else by the median.
func TestRecordSeconds(t *testing.T) {
	samples := []float64{1, 1, 1, 2, 2, 2, 6, 6, 6}
	for probe, want := range map[string]float64{probeClock: 3, probeChunk: 3,
		probeLinears: 2} {
		if got := (Record{Point: Point{Probe: probe}, Samples: samples}).seconds(); got != want {
			t.Errorf("%s: %v, want %v", probe, got, want)
		}
	}
}
