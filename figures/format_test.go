package figures

import (
	"bytes"
	"image"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormats writes every format of one picture: SVG as its golden text, PDF the same
// bytes each time, and none that does not exist.
func TestFormats(t *testing.T) {
	var first []byte
	for range 2 {
		dir := t.TempDir()
		files, err := DrawFolders(t.Context(), dir, []string{filepath.Join("testdata", "seeds")}, "",
			"svg", "pdf", "svg")
		if err != nil {
			t.Fatal(err)
		}
		if len(files) != 6 {
			t.Fatalf("drew %v, want two formats of three", files)
		}
		golden(t, "seeds", filepath.Join(dir, "ttft.svg"))
		pdf, err := os.ReadFile(filepath.Join(dir, "ttft.pdf"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(pdf, []byte("%PDF-")) || first != nil && !bytes.Equal(first, pdf) {
			t.Error("no PDF, or another one the second time")
		}
		first = pdf
	}
	_, err := DrawFolders(t.Context(), t.TempDir(), []string{filepath.Join("testdata", "seeds")}, "",
		"gif")
	if err == nil || !strings.Contains(err.Error(), `"gif"`) {
		t.Errorf("error is %v, want one that names the format", err)
	}
}

// TestPages holds every golden picture to the width of a page, but for the table of errors.
func TestPages(t *testing.T) {
	all, err := filepath.Glob(filepath.Join("testdata", "*", "golden-*.png"))
	if err != nil || len(all) < 20 {
		t.Fatalf("%d pictures, %v", len(all), err)
	}
	for _, path := range all {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if c, _, err := image.DecodeConfig(f); err != nil || c.Width > 2400 {
			t.Errorf("%s is %d pixels wide, want at most 2400 (%v)", path, c.Width, err)
		}
	}
}

// Two pictures of one name would overwrite one another.
func TestNothingIsOverwritten(t *testing.T) {
	pic := picture{file: "time",
		charts: []chart{{curves: []curve{{series: "a", points: []point{{x: 1, mean: 1, runs: 1}}}},
			axis: axis{0, 2, false}}}}
	if _, err := writeAll(t.Context(), t.TempDir(), []picture{pic, pic},
		[]string{"svg"}); err == nil ||
		!strings.Contains(err.Error(), "two pictures") {
		t.Errorf("error is %v, want a refusal", err)
	}
}
