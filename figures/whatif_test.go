package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIfGolden draws a small fixed what-if.
func TestWhatIfGolden(t *testing.T) {
	files, err := DrawWhatIf(t.TempDir(), filepath.Join("testdata", "whatif"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		golden(t, "whatif", f)
	}
}

func TestWhatIfOfNothing(t *testing.T) {
	for text, want := range map[string]string{`{"cases":[]}`: "no case",
		`{"cases":`: "unexpected end"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "whatif.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := DrawWhatIf(dir, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
