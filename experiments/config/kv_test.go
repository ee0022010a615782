package config

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// kv_dtype replaces the model's own type of KV.
func TestKVDtype(t *testing.T) {
	m, err := llm.Load("llama3.1-8b")
	if err != nil {
		t.Fatal(err)
	}
	for dtype, want := range map[string]int64{"auto": 4096, "bf16": 4096, "fp8": 2048} {
		shard, err := shardOf(m, &sim.Spec{KVDtype: dtype, TensorParallel: 1, ExpertParallel: 1})
		if err != nil || shard.LayerKVBytesPerToken() != want {
			t.Errorf("%s: %d bytes, want %d; %v", dtype, shard.LayerKVBytesPerToken(), want, err)
		}
	}
}
