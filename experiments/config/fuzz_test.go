package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments"
)

// FuzzLoad: whatever a file says, Load returns a configuration or one line.
func FuzzLoad(f *testing.F) {
	if e, ok := experiments.Named(experiments.Default); ok {
		f.Add(e.Text)
	}
	f.Add("seed = 1\n[workload]\nrate = [0.1, 0.2]\n[[systems]]\nname = \"a\"\npreset = \"vllm\"\n")
	f.Add("[system]\npreset = \"x\"\n[slo]\ntbt_s = 1e309")
	f.Add("systems = [{name = \"a\"}, 3]")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "trace") {
			return // opens files
		}
		doc, err := parseDocument("f.toml", text)
		if err != nil {
			return
		}
		l := newLoader()
		if err := l.base(); err != nil {
			t.Fatal(err)
		}
		var runs []Point
		if err = l.apply(doc, false); err == nil {
			runs, err = l.finish()
		}
		if err != nil {
			if msg := err.Error(); msg == "" || strings.Contains(msg, "\n") &&
				!strings.Contains(text, "\n") {
				t.Errorf("error %q", msg)
			}
			return
		}
		if len(runs) == 0 {
			t.Fatal("no points")
		}
		if _, err := TOML(runs); err != nil {
			t.Error(err)
		}
	})
}
