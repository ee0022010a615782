package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A prefix cache rejects tiers larger than the host's, chunks that are no whole blocks, and what
// cannot wait for loads: by file, line, key and value. Tiers of the host's size are not.
func TestPrefixTiersFitTheHost(t *testing.T) {
	const start = "system.preset = \"vllm-0.15\"\nsystem.block_tokens = 32\nsystem.dram_gib = 20\n" +
		"prefix_cache.mode = \"vllm\"\n"
	for _, c := range []struct{ lines, where, want string }{
		{"prefix_cache.dram_gib = 20.5", ":5",
			"is more than the host has for KV: system.dram_gib = 20"},
		{"prefix_cache.dram_gib = 20", "", ""},
		{"prefix_cache.dram_gib = 0.125", "", ""}, // 256 tokens of 512 KiB
		{"prefix_cache.dram_gib = 0.124", ":5", "has no room for a chunk"},
		{"prefix_cache.ssd_gib = 0.124", ":5", "has no room for a chunk"},
		{"prefix_cache.ssd_gib = 7153", ":5", "is more than drive pm9a3 has: 7152.6 GiB"},
		{"prefix_cache.ssd_gib = 7152", "", ""}, // of 7,680 GB
		{"prefix_cache.chunk = 100\nprefix_cache.dram_gib = 1", ":5", "must be a multiple of"},
		{"prefix_cache.chunk = 96\nprefix_cache.dram_gib = 1", "", ""},
		{"prefix_cache.drive = \"floppy\"", ":5", "unknown drive"},
		{"prefix_cache.dram_gib = 1\nsystem.scheduler = \"sarathi\"", ":5", // what it makes impossible
			"has requests wait for their loads only where"},
	} {
		_, err := Load(testkit.Write(t, "exp.toml", start+c.lines+"\n"), nil)
		var key *KeyError
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.lines, err)
		case c.want == "":
		case !errors.As(err, &key) || !strings.HasSuffix(key.Where, c.where) ||
			!strings.HasPrefix(c.lines, key.Key) || !strings.HasPrefix(key.Reason, c.want):
			t.Errorf("%s: %v, want %s at %s", c.lines, err, c.want, c.where)
		}
	}
}

// A tier is named where it has nothing to be below of: without a cache, and where the cache is in
// DRAM.
func TestPrefixTiersNeedACacheInHBM(t *testing.T) {
	const without = "is a tier of a prefix cache, and prefix_cache.mode = \"off\""
	for _, c := range []struct{ lines, want string }{
		{"mode = \"off\"\ndram_gib = 5", "prefix_cache.dram_gib = 5: " + without},
		{"mode = \"off\"\nssd_gib = 5", "prefix_cache.ssd_gib = 5: " + without},
		{"mode = \"vllm\"\ndram_gib = 5\nsystem.preset = \"sparseserve\"",
			"prefix_cache.dram_gib = 5: is below a prefix cache in HBM, and with offload.on = true"},
		{"mode = \"radix\"\nsystem.preset = \"sparseserve\"",
			"prefix_cache.mode = \"radix\": is in DRAM with offload.on = true"},
	} {
		text := strings.Replace("prefix_cache."+c.lines, "\ndram", "\nprefix_cache.dram", 1)
		text = strings.Replace(text, "\nssd", "\nprefix_cache.ssd", 1)
		_, err := Load(testkit.Write(t, "exp.toml", text+"\n"), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", text, err, c.want)
		}
	}
}
