package figures

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The means over spans of time keep the area: what a line had over all steps.
func TestBinsKeepTheArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 900).Draw(t, "steps")
		start, length, values := make([]float64, n), make([]float64, n), make([]float64, n)
		now, want := rapid.Float64Range(0, 5).Draw(t, "begin"), 0.0
		for i := range start {
			start[i] = now + rapid.Float64Range(0, 1).Draw(t, "idle")
			length[i] = rapid.Float64Range(1e-3, 1).Draw(t, "step")
			values[i] = rapid.Float64Range(0, 100).Draw(t, "value")
			now = start[i] + length[i]
			want += values[i] * length[i]
		}
		c := binned(line{name: "x", of: func(row int) float64 { return values[row] }}, start, length)
		got := 0.0
		for _, q := range c.points {
			got += q.mean * (now - start[0]) / float64(len(c.points))
		}
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("area %g, want %g", got, want)
		}
	})
}

// Columns of memory and of links are drawn by their names, whatever others there are.
func TestMemoryColumns(t *testing.T) {
	for column, want := range map[string][3]string{
		"hbm_used_bytes":    {"HBM", "HBM used", "GiB"},
		"dram_gib":          {"DRAM", "DRAM", "GiB"},
		"h2d_bytes":         {"Link", "h2d", "GiB"},
		"link_use":          {"Link", "link", "Share (%)"},
		"kv_used_blocks":    {"KV cache", "KV cache used", "Blocks"},
		"load_stall_s":      {"", "", ""},
		"prefill_seconds":   {"", "", ""},
		"blocks_loaded":     {"", "", ""},
		"dense_attention_s": {"", "", ""},
	} {
		if panel, name, unit, _ := memoryColumn(column); [3]string{panel, name, unit} != want {
			t.Errorf("%s: %q, %q, %q, want %q", column, panel, name, unit, want)
		}
	}
}
