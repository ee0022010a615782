package cost

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// Decode layers of one rank, without all-reduces, have the price of layers that were measured in a
// CUDA graph on an H200, which no price was fitted to.
func TestShardLayersAgainstMeasured(t *testing.T) {
	text, err := os.ReadFile("../../cuda/measured/shard-graph-h200.txt")
	if err != nil {
		t.Fatal(err)
	}
	card, err := hw.Load("h200", "vllm-0.15", nil)
	if err != nil {
		t.Fatal(err)
	}
	errs, gaps := map[int][]float64{}, []float64(nil)
	for line := range strings.Lines(string(text)) {
		var name string
		var ranks, requests int
		var layer, alone float64 // us, of the layer and of its kernels one by one
		if n, _ := fmt.Sscan(line, &name, &ranks, &requests, &layer, &alone); n < 5 {
			continue // a header
		}
		var m llm.Model
		if name == "llama3-70b" {
			m = *mustModel(t, "codellama-34b") // which differs in its FFN
			m.FFN = 28672
		} else {
			m = *mustModel(t, name)
		}
		shard, err := m.Shard(ranks)
		if err != nil {
			t.Fatal(err)
		}
		c := newCoster(card, &shard, &DeviceOptions{BlockTokens: 16})
		cost := c.layer(&sim.Work{Tokens: requests, Decodes: requests,
			DecodeTokens: int64(1024 * requests)})
		priced := 1e6 * (cost.linears + cost.dense).Seconds()
		errs[ranks] = append(errs[ranks], priced/layer-1)
		gaps = append(gaps, layer-alone)
	}
	for ranks, of := range errs {
		low, high := slices.Min(of), slices.Max(of)
		t.Logf("%d ranks: %d layers, price %+.1f to %+.1f %%", ranks, len(of), 100*low, 100*high)
		if len(of) != 9 || low < -0.075 || high > 0.055 {
			t.Errorf("%d ranks: %d layers, price %+.1f to %+.1f %%, want 9 within -7.5 to +5.5 %%",
				ranks, len(of), 100*low, 100*high)
		}
	}
	slices.Sort(gaps)
	if median := gaps[len(gaps)/2]; math.Abs(median-2) > 0.15 {
		t.Errorf("a layer takes %.2f us longer than its kernels in the median, the document says 2.0",
			median)
	}
}
