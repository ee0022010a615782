package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A relative path in a file is from the file's folder, or else from the working folder; one of a
// flag is from the working folder.
func TestPathsAreFromTheFile(t *testing.T) {
	testkit.Write(t, "exp.toml", "") // the working folder is a temporary one from here on
	const trace = "arrived_s,prompt_tokens,output_tokens\n0,10,5\n"
	const ssd = "[system]\npreset = \"vllm-0.15\"\n[prefix_cache]\nmode = \"vllm\"\nssd_gib = 10\n"
	for path, text := range map[string]string{
		"sub/mine.csv": trace, "mine.csv": trace, "cwd.csv": trace, "sub/m.toml": huge,
		"sub/trace.toml": "[workload]\ntrace = \"mine.csv\"\n",
		"sub/cwd.toml":   "[workload]\ntrace = \"cwd.csv\"\n",
		"sub/none.toml":  "seed = 1\n[workload]\ntrace = \"none.csv\"\n",
		"sub/model.toml": "model = \"./m.toml\"\ngpu = \"h200\"\n",
		"sub/noms.toml":  "model = \"nomodel.json\"\n",
		"sub/typo.toml":  "model = \"lvm-7b\"\n",
		"sub/axis.toml": "[workload]\nrate = 1\n" +
			"[[axis]]\ngrid.workload.trace = [\"mine.csv\", \"cwd.csv\"]\n",
		"sub/base.toml": "base = \"deep/trace.toml\"\n",
		// the drive is read: its name is missing
		"sub/d.toml":     "title = \"nameless\"\n",
		"sub/drive.toml": ssd + "drive = \"d.toml\"\n",

		"sub/deep/trace.toml": "[workload]\ntrace = \"../mine.csv\"\n",
	} {
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file  string
		sets  []string
		trace string // of each variant
		err   string
	}{
		{"sub/trace.toml", nil, "sub/mine.csv", ""},
		{"sub/cwd.toml", nil, "cwd.csv", ""},
		{"sub/trace.toml", []string{"workload.trace=mine.csv"}, "mine.csv", ""},
		{"sub/axis.toml", nil, "sub/mine.csv cwd.csv", ""},
		{"sub/base.toml", nil, "sub/mine.csv", ""},
		{"sub/none.toml", []string{"workload.trace=mine.csv"}, "mine.csv", ""},
		{"sub/none.toml", nil, "", "sub/none.toml:3: workload.trace: none.csv: no such file"},
		{"sub/noms.toml", nil, "", `sub/noms.toml:1: model = "nomodel.json": `},
		{"sub/drive.toml", nil, "", "sub/d.toml: name: want a name"},
		{"sub/typo.toml", nil, "", `did you mean "lwm-7b"`},
		{"sub/model.toml", nil, "", "sub/m.toml"}, // which is read: it does not fit the card
	} {
		s, err := LoadSweep(t.Context(), c.file, c.sets)
		if err != nil {
			if c.err == "" || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s %v: %v, want %q", c.file, c.sets, err, c.err)
			}
			continue
		}
		var got []string
		for _, v := range s.Variants {
			got = append(got, v[0].Workload.Trace)
		}
		if text := strings.Join(got, " "); c.err != "" || text != c.trace {
			t.Errorf("%s %v: trace %s, want %s and error %q", c.file, c.sets, text, c.trace, c.err)
		}
	}
}
