package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// What a system starts as: by the paper's experiment, by its preset, and by what the configuration
// names.
func TestSystemsStartAsTheirEngineDoes(t *testing.T) {
	const server = "model=llama3.1-8b gpu=h100-80gb "
	for _, c := range []struct{ sets, want string }{
		// the paper's experiment has the engine of its time, for a preset of it alone too
		{"", "vllm-0.5 vllm off truncate random 2048 256"},
		{"system.preset=vllm", "vllm-0.5 vllm off truncate random 2048 256"},
		{"system.preset=vllm-0.15", "vllm-0.15 vllm-v1 vllm reject random 2048 256"},
		// another model, card or trace has the current vLLM, as it starts
		{server + "system.preset=vllm", "vllm-0.19 vllm-v1-whole vllm reject top-p 8192 1024"},
		{"gpu=h100-80gb", "vllm-0.19 vllm-v1-whole vllm reject random 8192 1024"},
		{"workload.prompt_lengths=fixed(9) workload.output_lengths=fixed(9) workload.rate=1",
			"vllm-0.19 vllm-v1-whole vllm reject random 2048 256"},
		{server + "system.preset=vllm system.use=offline",
			"vllm-0.19 vllm-v1-whole vllm reject top-p 16384 1024"},
		{server + "system.preset=vllm system.max_tokens=4096",
			"vllm-0.19 vllm-v1-whole vllm reject top-p 4096 1024"},
		{server + "system.preset=vllm system.engine=vllm-0.5",
			"vllm-0.5 vllm off truncate random 2048 256"},
		{server + "system.preset=vllm system.engine=vllm-0.28",
			"vllm-0.28 vllm-v1-whole vllm reject top-p 8192 1024"},
		{server + "system.preset=vllm system.sampling=random",
			"vllm-0.19 vllm-v1-whole vllm reject random 8192 1024"},
		// KV of ended requests stays nowhere in the papers' systems that offload
		{server + "system.preset=sparseserve", "vllm-0.19 vllm-v1-whole off reject top-p 8192 1024"},
	} {
		cfg, err := Load("", strings.Fields(c.sets))
		if err != nil {
			t.Fatalf("%s: %v", c.sets, err)
		}
		s := &cfg[0].System
		got := strings.Join([]string{s.Engine, s.Scheduler, s.PrefixCache.Mode, s.Prefill.OverLength,
			s.Sampling,
			Show(s.MaxTokens), Show(s.MaxRequests)}, " ")
		if got != c.want ||
			s.Prefill.ChunkTokens != s.MaxTokens {
			t.Errorf("%s: %s in chunks of %d, want %s", c.sets, got, s.Prefill.ChunkTokens, c.want)
		}
	}
}

// If an engine's default prefix cache cannot be simulated for a model, the cache is off and a note
// gives the reason. If the configuration asks for that cache, loading fails, unless it can be
// simulated in another way.
func TestDefaultPrefixCacheGivesWay(t *testing.T) {
	for _, c := range []struct {
		mode, text, note string
		refused          bool
	}{
		{"radix", "model = \"gpt-oss-20b\"\ngpu = \"h100-80gb\"\nsystem.engine = \"sglang-0.5\"",
			"it is simulated for the sliding windows of gpt-oss-20b only with whole contexts in all layers",
			false},
		{"vllm", "model = \"llama3.1-8b\"\ngpu = \"h100-80gb\"\nprefill.split = \"layer\"",
			"it in HBM needs prefills that compute all layers of a token at once", true},
		{"vllm", "model = \"llama3.1-8b\"\ngpu = \"h100-80gb\"\nworkload.prefix_hit = 0.5", "",
			false},
	} {
		text := c.text + "\nsystem.preset = \"vllm\"\n"
		cfg, err := LoadSweep(t.Context(), testkit.Write(t, "c.toml", text), nil)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		notes := strings.Join(cfg.Notes, "\n")
		mode := cfg.Variants[0][0].System.PrefixCache.Mode
		if mode != "off" || !strings.Contains(notes, c.note) ||
			(notes == "") != (c.note == "") {
			t.Errorf("%s: prefix_cache %q, notes %q, want %q", c.text, mode, notes, c.note)
		}
		if _, err := Load(testkit.Write(t, "c.toml", text+"prefix_cache.mode = \""+c.mode+"\"\n"),
			nil); err == nil && c.refused || !c.refused && c.note != "" && err != nil {
			t.Errorf("%s: a prefix cache that is asked for: %v", c.text, err)
		}
	}
}
