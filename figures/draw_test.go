package figures

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/cmpimg"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden draws small fixed results and compares pictures and tables with
// golden files.
func TestGolden(t *testing.T) {
	for _, results := range []string{"one-model", "two-models", "seeds"} {
		t.Run(results, func(t *testing.T) {
			dir := t.TempDir()
			files, err := DrawFolders(t.Context(), dir, []string{filepath.Join("testdata", results)}, "")
			if err != nil {
				t.Fatal(err)
			}
			if len(files) < 3 {
				t.Fatalf("drew %v, want a picture of each metric", files)
			}
			for _, f := range files {
				golden(t, results, f)
				golden(t, results, strings.TrimSuffix(f, ".png")+".csv")
			}
		})
	}
}

func golden(t *testing.T, results, path string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join("testdata", results, "golden-"+filepath.Base(path))
	if *update {
		kept := got
		if filepath.Ext(path) == ".png" {
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
	if filepath.Ext(path) == ".png" {
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

// A sweep's variants are drawn apart, not averaged as if they were seeds.
func TestVariantsOfASweep(t *testing.T) {
	dir := t.TempDir()
	const text = `[
		{"system":"vllm","model":"lwm-7b","rate":0.1,"completed":9,"ttft_s":{"mean":1},"settings":{"system.window":4,"workload.rate":0.1}},
		{"system":"vllm","model":"lwm-7b","rate":0.1,"completed":9,"ttft_s":{"mean":3},"settings":{"system.window":8,"workload.rate":0.1}},
		{"system":"vllm","model":"lwm-7b","rate":0.1,"completed":9,"ttft_s":{"mean":5},"settings":{"system.window":8,"workload.rate":0.1}}]`
	if err := os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := DrawFolders(t.Context(), dir, []string{dir}, ""); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "ttft.csv"))
	for _, want := range []string{",vLLM,4,1,1,", ",vLLM,8,2,4,"} {
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("no %q in:\n%s(%v)", want, got, err)
		}
	}
}

// TestPrintable holds the pictures to the width that print needs.
func TestPrintable(t *testing.T) {
	dir := t.TempDir()
	files, err := DrawFolders(t.Context(), dir, []string{filepath.Join("testdata", "one-model")}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		r, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c, err := png.DecodeConfig(r)
		if err != nil {
			t.Fatal(err)
		}
		if c.Width < 1200 {
			t.Errorf("%s is %d pixels wide, want 1200 or more", filepath.Base(f), c.Width)
		}
	}
	if min(labelSize, tickSize, legendSize) < 11 {
		t.Error("text below 11 points")
	}
}

func TestNothingToDraw(t *testing.T) {
	for name, text := range map[string]string{
		"empty":       `[]`,
		"none done":   `[{"system":"vllm","completed":0}]`,
		"half a file": `[{"system":"vl`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := DrawFolders(t.Context(), dir, []string{dir}, ""); err == nil ||
				!strings.Contains(err.Error(), dir) {
				t.Errorf("error is %v, want one that names the folder", err)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "*.png")); len(files) > 0 {
				t.Errorf("left %v", files)
			}
		})
	}
}
