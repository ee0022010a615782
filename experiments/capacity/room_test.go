package capacity

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// A request is longer than the context, the largest prompt or HBM, and truncated or refused.
func TestRoom(t *testing.T) {
	all := room{context: 1000, memory: 800, prompt: 600}
	cuts := room{context: 1000, memory: 1000, cuts: true}
	for _, c := range []struct {
		room
		length
		over excess
		cut  bool
	}{
		{all, length{prompt: 600, output: 200}, none, false},
		{all, length{prompt: 601, output: 10}, ofKey, false},
		{all, length{prompt: 600, output: 201}, ofMemory, false},
		{all, length{prompt: 500, output: 501}, ofContext, false},
		{cuts, length{prompt: 900, output: 200}, ofContext, true},
		{cuts, length{prompt: 9, output: 1000}, ofContext, false},
		{room{context: 1000, memory: 900, cuts: true}, length{prompt: 900, output: 200}, ofMemory, false},
		{room{context: 1000, memory: 1000, prompt: 100, cuts: true},
			length{prompt: 900, output: 200}, ofKey, true},
	} {
		if over, cut := c.room.of(c.length); over != c.over || cut != c.cut {
			t.Errorf("%+v of %+v: %d, %t", c.length, c.room, over, cut)
		}
	}
}

// The share of prompts that is not served whole is that of the runs, said once where the systems
// agree.
func TestTooLongShares(t *testing.T) {
	load := func(sets ...string) []config.Point {
		c, err := config.Load("", append([]string{"model=llama2-7b", "gpu=h100-80gb",
			"workload.output_lengths=fixed(96)", "workload.rate=1"}, sets...))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const some, refuse = "workload.prompt_lengths=uniform(2001,6000)", "prefill.over_length=reject"
	for _, c := range []struct {
		config []config.Point
		want   string
	}{
		{load("workload.prompt_lengths=fixed(4000)", refuse), ""},
		{load("workload.prompt_lengths=fixed(4001)", refuse),
			"100 % of prompts refused: longer than the context of 4096 tokens"},
		{load(some, "prefill.max_prompt_tokens=1000", "system.preset=vllm",
			"prefill.over_length=truncate"),
			"100 % of prompts truncated: longer than prefill.max_prompt_tokens = 1000"},
		{load("workload.prompt_lengths=fixed(3000)", "system.preset=vllm,vllm-so", refuse,
			"system.kv_gib=1"), "100 % of prompts refused: longer than the 2048 tokens whose KV fits in " +
			"HBM (vllm)"},
	} {
		if got, err := TooLong([][]config.Point{c.config}); err != nil || got != c.want {
			t.Errorf("%q, %v, want %q", got, err, c.want)
		}
	}
}
