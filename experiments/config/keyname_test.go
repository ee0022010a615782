package config_test

import (
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// A key is called by what tells it apart from others.
func TestKeyName(t *testing.T) {
	for key, want := range map[string]string{"seed": "seed", "workload.rate": "rate",
		"selection.budget_tokens": "budget_tokens", "offload.on": "offload",
		"prefix_cache.mode": "prefix_cache", "prefix_cache.dram_gib": "prefix_cache.dram_gib",
		"offload.eviction": "offload.eviction", "system.max_tokens": "max_tokens"} {
		if got := config.KeyName(key); got != want {
			t.Errorf("%s is called %q, want %q", key, got, want)
		}
	}
}
