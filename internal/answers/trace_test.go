package answers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The description of a trace is a document with its prefix caches as a table and as a chart.
func TestTraceOfAFolder(t *testing.T) {
	d, err := Read(filepath.Join("testdata", "description"))
	if err != nil {
		t.Fatal(err)
	}
	if got := cells(t, d.Tables, "Lengths", "prompt tokens"); got["requests"] != "500" ||
		got["mean"] != "1342" || got["max"] != "5991" {
		t.Errorf("lengths %v", got)
	}
	bounded := cells(t, d.Tables, "Prefix caches", "bounded")
	if bounded["size GiB"] != "8.00" || bounded["share % of all"] != "75.3" {
		t.Errorf("caches %v", bounded)
	}
	c := d.Figures[0].Charts[0]
	last := c.Lines[0].Points[len(c.Lines[0].Points)-1]
	if len(c.Lines) != 3 || c.Lines[1].Points[0].Note != "8 GiB: 75.3 %" ||
		last.Y > c.Levels[0]+1e-9 || last.Y < 0.99*c.Levels[0] {
		t.Errorf("%d lines, last %+v, without bound %v", len(c.Lines), last, c.Levels)
	}
}

func TestDamagedDescription(t *testing.T) {
	for text, want := range map[string]string{`{}`: "", `{"prefix":`: "unexpected end",
		`{"prefix": {"curve": [[1, 2], [1]]}}`: "2 capacities of 1 shares"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, DescriptionFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Read(dir)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
