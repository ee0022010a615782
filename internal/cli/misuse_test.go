package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// misuseFiles are what the command lines of TestMisuse name.
func misuseFiles() map[string]string {
	long := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i+1)
		}
		return strings.Join(all, ", ")
	}
	grid := func(rates, seeds int) string {
		return "[workload]\nrequests = 5\n[[axis]]\ngrid.workload.rate = [" + long(rates, "%d.5") +
			"]\ngrid.seed = [" + long(seeds, "%d") + "]\n"
	}
	return map[string]string{
		"mix.csv": "arrived_s,prompt_tokens,output_tokens,set\n0.5,4000,20,\n9.1,60000,20,\n",
		"mamba.json": `{"model_type": "mamba", "hidden_size": 2048, "num_hidden_layers": 27,
"vocab_size": 50280, "torch_dtype": "bfloat16"}`,
		"array.json":   "[]",
		"axis.toml":    "[[axis]]\nworkload.rate = [1.0]\n",
		"million.toml": grid(1000, 1000),
		"billion.toml": grid(31623, 31623),
		"seed.toml":    "[system]\npreset = \"vllm\"\n[[axis]]\ngrid.seed = [1, 2]\n",
		"both.toml":    "[system]\npreset = [\"vllm\", \"vllm-s\"]\n[[systems]]\npreset = \"vllm-s\"\n",
	}
}

// Command lines that once panicked, hung, passed for success or were ignored in part: each ends
// with a status and one line. Package config holds what the lines say.
func TestMisuse(t *testing.T) {
	small := []string{"simulate", "--set", "workload.requests=5", "--set", "workload.rate=0.5"}
	set := func(values ...string) []string {
		args := small[:len(small):len(small)]
		for _, v := range values {
			args = append(args, "--set", v)
		}
		return args
	}
	cases := [][]string{
		set("system.preset=sparseserve", "offload.working_set_steps=10000000000"),
		set("system.preset=sparseserve", "offload.working_set_steps=100000000"),
		set("system.preset=sparseserve-psa", "selection.microbatch=9223372036854775807"),
		set("system.preset=vllm", "system.kv_gib=1e300"),
		set("system.preset=vllm", "system.dram_gib=1e10"),
		set("system.preset=sparseserve", "offload.save_buffer_mib=1e300"),
		set("system.preset=sparseserve", "selection.sink_blocks=9223372036854775807"),
		set("system.preset=sparseserve", "selection.budget_tokens=33"),
		set("system.preset=vllm", "system.kv_gib=0.01"),
		set("system.preset=vllm", "system.kv_gib=0.01", "workload.trace=mix.csv"),
		set("workload.arrivals=trace", "workload.trace=mix.csv"),
		set("workload.speed=5"),
		set("workload.rate=1\nmodel=\"x\""),
		set("gpu=b100"),
		set("model=array.json"), set("model=mamba.json"),
		append(set(), "--split-every", "3"), append(set(), "--workers", "-1"),
		{"simulate", ""},
		{"simulate", "/dev/zero"},
		{"simulate", "both.toml"},
		{"simulate", "axis.toml"}, {"simulate", "seed.toml", "--out", "o", "--points", "./o/"},
		{"simulate", "million.toml"}, {"simulate", "billion.toml"},
		{"goodput", "--set", "goodput.start=1e-300"},
		{"trace", "convert", "mix.csv", "--out", "mix.csv"},
		{"trace", "convert", "mix.csv", "--out", "/dev/full"},
	}
	files := misuseFiles()
	for _, args := range cases {
		dir := t.TempDir()
		t.Chdir(dir)
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		line := strings.Join(args, " ")
		if status != 1 || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: status %d, stderr %q", line, status, errs)
		}
		for name, text := range files {
			if now, err := os.ReadFile(name); err != nil || string(now) != text {
				t.Errorf("%q: %s is another file now (%v)", line, name, err)
			}
		}
	}
}
