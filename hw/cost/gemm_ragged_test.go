package cost

import (
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// FP8 linears take longer for tokens that are no multiple of 8, as in their tables; 16-bit linears,
// and up to 8 tokens, do not.
func TestRaggedLinears(t *testing.T) {
	p, err := hw.Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustModel(t, "llama3.1-8b")
	one := []llm.Matrix{{Rows: 4096, Columns: 16384}}
	ratio := func(bytes, n, from float64) float64 {
		l := newGEMMOf(p, m, one, bytes)
		a, _ := l.of(n)
		b, _ := l.of(from)
		return a / b
	}
	if r := ratio(1, 2049, 2048); r < 1.3 || r > 2 {
		t.Errorf("FP8: 2049 tokens take %.3g times as long as 2048, the table has 1.64", r)
	}
	if r := ratio(1, 2049, 2056); r < 1.3 {
		t.Errorf("FP8: 2049 tokens take %.3g times as long as 2056, which are aligned", r)
	}
	blocks := *m
	blocks.WeightBlock = 128
	scaled := newGEMMOf(p, &blocks, one, 1)
	ragged, _ := scaled.of(2049)
	if aligned, _ := scaled.of(2056); ragged < 1.05*aligned {
		t.Errorf("FP8 with scales of blocks: 2049 tokens take %g s, 2056 take %g", ragged, aligned)
	}
	if r := ratio(1, 7, 8); r > 1 {
		t.Errorf("FP8: 7 tokens take %.3g times as long as 8", r)
	}
	if r := ratio(2, 2049, 2056); r > 1 {
		t.Errorf("16 bits: 2049 tokens take %.3g times as long as 2056", r)
	}
}
