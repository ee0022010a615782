package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A varied value that what the file sets cannot stand with is what the error names.
func TestVariedValueIsNamed(t *testing.T) {
	path := testkit.Write(t, "w.toml", `[workload]
rate = 0.1
[system]
preset = "vllm-0.15"

[prefix_cache]
mode = "vllm"
dram_gib = 8
`)
	for _, c := range []struct{ key, value, want string }{
		{"prefix_cache.mode", "off",
			"--vary prefix_cache.mode=off: prefix_cache.dram_gib = 8: is a tier of a prefix cache"},
		{"system.dram_gib", "4",
			"--vary system.dram_gib=4: prefix_cache.dram_gib = 8: is more than the host has"},
		{"prefix_cache.dram_gib", "1e+06",
			"--vary: prefix_cache.dram_gib = 1e+06: is more than the host has"},
	} {
		_, err := LoadVaried(path, nil, [][]Setting{{NewSetting(c.key, c.value)}}, false)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
