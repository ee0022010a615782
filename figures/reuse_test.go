package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDescriptionGolden draws the prefix caches of a small trace.
func TestDescriptionGolden(t *testing.T) {
	files, err := DrawDescription(t.Context(), t.TempDir(), filepath.Join("testdata", "description"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	golden(t, "description", files[0])
}

func TestDescriptionOfNothing(t *testing.T) {
	for text, want := range map[string]string{`{}`: "", `{"prefix":`: "cut short",
		`{"prefix": {"curve": [[1, 2], [1]]}}`: "2 capacities of 1 shares"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, describedFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		files, err := DrawDescription(t.Context(), dir, dir)
		if len(files) > 0 || (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", text, files, err)
		}
	}
}
