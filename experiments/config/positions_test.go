package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/sparseserve/sparseserve/experiments"
)

func TestKeyLines(t *testing.T) {
	got := keyLines(`# comment = 1
model = "a # b"
[workload]
rate = [
  0.1, # one = 2
  0.2,
]
'quoted' = """
text = 1
[no]
"""
a.b = 1
[[systems]]
name = 'x'
[[systems]]
name = "y"   # z
inline = { p = 1 }
[ slo ]
delay_s = 2
[[axis]]
[axis.grid]
seed = [1]
[[axis.list]]
seed = 1
`)
	want := map[string]int{
		"model": 2, "workload": 3, "workload.rate": 4, "workload.quoted": 8,
		"workload.a": 12, "workload.a.b": 12, "systems": 13, "systems[0]": 13, "systems[0].name": 14,
		"systems[1]": 15, "systems[1].name": 16, "systems[1].inline": 17, "slo": 18, "slo.delay_s": 19,
		"axis": 20, "axis[0]": 20, "axis[0].grid": 21, "axis[0].grid.seed": 22,
		"axis[0].list": 23, "axis[0].list[0]": 23, "axis[0].list[0].seed": 24,
	}
	for key, line := range want {
		if got[key] != line {
			t.Errorf("%s is in line %d, want %d", key, got[key], line)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok && key != "workload" && key != "systems[0]" && key != "systems[1]" &&
			key != "slo" {
			t.Errorf("found key %q in line %d", key, got[key])
		}
	}
}

// FuzzKeyLines holds keyLines to the TOML parser: the keys outside inline
// tables are the same.
func FuzzKeyLines(f *testing.F) {
	f.Add("a = 1\n[b]\nc = [1,\n2]\n")
	f.Add("a = '''\nb = 1\n'''\nc.d = \"\\\"\"\n")
	if e, ok := experiments.Named(experiments.Default); ok {
		f.Add(e.Text)
	}
	f.Add(presetsTOML)
	f.Fuzz(func(t *testing.T, text string) {
		lines := keyLines(text)
		var tree map[string]any
		meta, err := toml.Decode(text, &tree)
		if err != nil || strings.ContainsAny(text, "{\\") || strings.Contains(text, "[[") {
			return
		}
		want := map[string]bool{}
		for _, key := range meta.Keys() {
			for _, part := range key {
				if part == "" || strings.ContainsAny(part, ".\"'# \t=[]") {
					return // such keys are nobody's
				}
			}
			want[strings.Join(key, ".")] = true
		}
		for key := range want {
			if lines[key] == 0 {
				t.Errorf("no line for %q in %q, only %v", key, text, maps.Collect(maps.All(lines)))
			}
		}
	})
}

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
		if err = l.apply(doc, false); err == nil {
			err = l.finish()
		}
		if err != nil {
			if msg := err.Error(); msg == "" || strings.Contains(msg, "\n") &&
				!strings.Contains(text, "\n") {
				t.Errorf("error %q", msg)
			}
			return
		}
		if len(l.cfg.Points()) == 0 {
			t.Error("no points")
		}
		if _, err := l.cfg.TOML(); err != nil {
			t.Error(err)
		}
	})
}
