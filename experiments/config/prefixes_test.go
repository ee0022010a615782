package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A prefix cache is refused tiers that are larger than what the host has, chunks that are no whole
// blocks, and what cannot wait for loads: by file, line, key and value. Tiers of the host's size
// are not.
func TestPrefixTiersFitTheHost(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"prefix_dram_gib = 20.5", "prefix_dram_gib = 20.5: is more than the host has for KV: " +
			"dram_gib = 20"},
		{"prefix_dram_gib = 20", ""},
		{"prefix_dram_gib = 0.125", ""}, // 256 tokens of 512 KiB
		{"prefix_dram_gib = 0.124", "prefix_dram_gib = 0.124: has no room for a chunk: "},
		{"prefix_ssd_gib = 0.124", "prefix_ssd_gib = 0.124: has no room for a chunk: "},
		{"prefix_ssd_gib = 7153", "prefix_ssd_gib = 7153: is more than drive pm9a3 has: 7152.6 GiB"},
		{"prefix_ssd_gib = 7152", ""}, // of 7,680 GB
		{"prefix_chunk = 100", "prefix_chunk = 100: must be a multiple of block_tokens = 32"},
		{"prefix_chunk = 96", ""},
		{"prefix_drive = \"floppy\"", "prefix_drive = \"floppy\": "},
		{"base = \"sarathi\"", "prefix_dram_gib = 1: has requests wait for their loads only where " +
			"blocks are allocated chunk by chunk, as with base = \"vllm-v1\": base = \"sarathi\""},
	} {
		text := "[system]\npreset = \"vllm-0.15\"\nprefix_cache = \"vllm\"\nblock_tokens = 32\n" +
			"dram_gib = 20\n"
		line := "exp.toml:6: system."
		switch {
		case strings.HasPrefix(c.line, "base"): // named by what it makes impossible
			text, line = text+"prefix_dram_gib = 1\n", "exp.toml:"
		case !strings.Contains(c.line, "_gib"):
			text, line = text+"prefix_dram_gib = 1\n", "exp.toml:7: system."
		}
		_, err := Load(testkit.Write(t, "exp.toml", text+c.line+"\n"), nil)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.line, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), line) ||
			!strings.Contains(err.Error(), "system."+c.want)):
			t.Errorf("%s: %v, want %s of %s", c.line, err, c.want, line)
		}
	}
}

// A tier is named where it has nothing to be below of: without a cache, and where the cache is in
// DRAM.
func TestPrefixTiersNeedACacheInHBM(t *testing.T) {
	const without = "is a tier of a prefix cache, and prefix_cache = \"off\""
	for _, c := range []struct{ lines, want string }{
		{"prefix_cache = \"off\"\nprefix_dram_gib = 5",
			"exp.toml:3: system.prefix_dram_gib = 5: " + without},
		{"prefix_cache = \"off\"\nprefix_ssd_gib = 5",
			"exp.toml:3: system.prefix_ssd_gib = 5: " + without},
		{"preset = \"sparseserve\"\nprefix_cache = \"vllm\"\nprefix_dram_gib = 5",
			"exp.toml:4: system.prefix_dram_gib = 5: is below a prefix cache in HBM, and with offload"},
		{"preset = \"sparseserve\"\nprefix_cache = \"radix\"",
			"exp.toml:3: system.prefix_cache = \"radix\": is in DRAM with offload = true"},
	} {
		_, err := Load(testkit.Write(t, "exp.toml", "[system]\n"+c.lines+"\n"), nil)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", c.lines, err, c.want)
		}
	}
}
