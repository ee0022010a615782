package validate

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The table of the runs on an H200, as the README has it, follows from their
// kept files alone, byte for byte.
func TestValidationOnH200IsRecomputed(t *testing.T) {
	kept := filepath.Join("..", "validation", "h200")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	report, err := Recompute(dir)
	if err != nil {
		t.Fatal(err)
	}
	if disturbed, told := Disturbed(report.Runs); len(disturbed) > 0 || told != 38 {
		t.Errorf("%d runs are disturbed: %+v; %d tell, want 38", len(disturbed), disturbed, told)
	}
	for _, name := range []string{"validate.csv", "validate.json", "runs.json"} {
		want, err := os.ReadFile(filepath.Join(kept, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s differs from the kept one (%v)", name, err)
		}
	}
}
