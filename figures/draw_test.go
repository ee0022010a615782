package figures

import (
	"bytes"
	"encoding/json"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/cmpimg"

	"github.com/sparseserve/sparseserve/internal/doc"
)

var update = flag.Bool("update", false, "write the golden files anew")

// figuresOf reads figures of testdata, or those named.
func figuresOf(t testing.TB, names ...string) (some []doc.Figure) {
	t.Helper()
	text, err := os.ReadFile("testdata/figures.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []doc.Figure
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if len(names) == 0 || slices.Contains(names, f.Name) {
			some = append(some, f)
		}
	}
	return some
}

// TestGolden draws a figure of each kind of chart, and one of several kinds.
func TestGolden(t *testing.T) {
	all := figuresOf(t)
	dir := t.TempDir()
	paths, err := Draw(t.Context(), dir, all)
	if err != nil || len(paths) != len(all) {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		golden(t, path)
		picture, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer picture.Close()
		if c, err := png.DecodeConfig(picture); err != nil || c.Width > 2400 {
			t.Errorf("%s is %d pixels wide, want at most those of a page (%v)", path, c.Width, err)
		}
	}
	if min(labelSize, tickSize, legendSize) < 11 {
		t.Error("text below 11 points")
	}
}

func golden(t *testing.T, path string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join("testdata", "golden-"+filepath.Base(path))
	isPicture := filepath.Ext(path) == ".png"
	if *update {
		kept := got
		if isPicture {
			if kept, err = reduced(got); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(want, kept, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ref, err := os.ReadFile(want)
	if err != nil {
		t.Fatal(err)
	}
	same := bytes.Equal(got, ref)
	if isPicture {
		if same, err = samePicture(got, ref); err != nil {
			t.Fatal(err)
		}
	}
	if !same {
		t.Errorf("%s differs from %s; if it is better, run: go test ./figures -update",
			filepath.Base(path), want)
	}
}

// samePicture lets no pixel be off by more than the colours of golden pictures (reduced) and
// rounding of glyph outlines, which differs between CPU architectures.
func samePicture(got, want []byte) (bool, error) {
	return cmpimg.EqualApprox("png", got, want, 0.06)
}

// TestGoldenSeesChanges moves a point and a bar a little: the picture must no longer pass for the
// golden one.
func TestGoldenSeesChanges(t *testing.T) {
	for _, f := range figuresOf(t, "ttft", "mi-fig1b") {
		want, err := os.ReadFile(filepath.Join("testdata", "golden-"+f.Name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		c := f.Charts[len(f.Charts)-1]
		if len(c.Bars) > 0 {
			c.Bars[1].Parts[0].Value *= 1.1
		} else {
			c.Lines[0].Points[0].Y *= 1.1
		}
		got, err := layout(&f).encode("png")
		if err != nil {
			t.Fatal(err)
		}
		if same, err := samePicture(got, want); same || err != nil {
			t.Errorf("%s: a value moved, and the picture is the same (%v)", f.Name, err)
		}
	}
}

// TestFormats writes every format of one picture: SVG as its golden text, PDF the same bytes each
// time, and none that does not exist.
func TestFormats(t *testing.T) {
	all := figuresOf(t, "ttft")
	var first []byte
	for range 2 {
		dir := t.TempDir()
		files, err := Draw(t.Context(), dir, all, "svg", "pdf", "svg")
		if err != nil || len(files) != 2 {
			t.Fatalf("drew %v, %v, want two formats", files, err)
		}
		golden(t, filepath.Join(dir, "ttft.svg"))
		pdf, err := os.ReadFile(filepath.Join(dir, "ttft.pdf"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(pdf, []byte("%PDF-")) || first != nil && !bytes.Equal(first, pdf) {
			t.Error("no PDF, or another one the second time")
		}
		first = pdf
	}
	_, err := Draw(t.Context(), t.TempDir(), all, "gif")
	if err == nil || !strings.Contains(err.Error(), `"gif"`) {
		t.Errorf("error is %v, want one that names the format", err)
	}
}

// Two pictures of one name would overwrite one another.
func TestNothingIsOverwritten(t *testing.T) {
	all := figuresOf(t, "ttft")
	_, err := Draw(t.Context(), t.TempDir(), slices.Concat(all, all), "svg")
	if err == nil || !strings.Contains(err.Error(), "two pictures") {
		t.Errorf("error is %v, want a refusal", err)
	}
}

// A document without charts has no picture. A chart without points, and a long name, have one that
// is no wider than others.
func TestOddFigures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	paths, err := Draw(t.Context(), dir, []doc.Figure{{Name: "none"}})
	if entries, _ := os.ReadDir(dir); err != nil || len(paths)+len(entries) != 0 {
		t.Errorf("drew %v, %v", paths, err)
	}
	long := strings.Repeat("name ", 5000)
	for name, c := range map[string]*doc.Chart{
		"bars": {Title: long, Bars: []doc.Bar{{Name: long}}},
		"heat": {Title: long, Heat: &doc.Heat{ValuesA: []string{"1"},
			ValuesB: []string{"2"}}},
		"lines": {Title: long, Lines: []doc.Line{{Name: long}}},
	} {
		s := layout(&doc.Figure{Charts: []*doc.Chart{c}})
		if s.width > 1100 {
			t.Errorf("%s: %g points wide", name, s.width)
		}
		if _, err := s.encode("svg"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
