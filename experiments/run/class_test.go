package run

import (
	"context"
	"fmt"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// batches keeps the largest batch of decodes, and the number of steps.
type batches struct{ largest, steps int }

func (b *batches) Step(r *metrics.Step) error {
	b.largest = max(b.largest, r.Decodes)
	b.steps++
	return nil
}
func (*batches) Request(*metrics.Request) error { return nil }
func (*batches) Gap(des.Time)                   {}

// As many requests decode at once as there is HBM for their KV, by the arithmetic of shapes alone:
// latents in 16 bits, with an indexer's keys or without, keys and values of each head, or of the
// newest tokens in layers with a window.
func TestConcurrencyIsWhatHBMHolds(t *testing.T) {
	const prompt, output, block = 2040, 8, 16 // the last token is in the prompt's last block
	for _, c := range []struct {
		model   string
		gpus    int
		kvGiB   float64
		context int64 // bytes of KV of a request on each GPU
	}{
		{"deepseek-v3", 8, 1, 2048 * 61 * 576 * 2},
		{"deepseek-v3.2", 8, 1, 2048 * 61 * (576*2 + 132)},
		{"qwen3-30b-a3b", 1, 2, 2048 * 48 * 4 * 128 * 2 * 2},
		{"gpt-oss-20b", 1, 0.5, (2048 + 128 + block) * 12 * 8 * 64 * 2 * 2},
		{"llama3-8b", 1, 2, 2048 * 131072},
	} {
		cfg := mustLoad(t, "", "model="+c.model, "gpu=h200", "system.preset=vllm-0.15",
			fmt.Sprintf("system.tensor_parallel=%d", c.gpus), fmt.Sprintf("system.kv_gib=%g", c.kvGiB),
			fmt.Sprintf("system.block_tokens=%d", block), "workload.arrivals=closed",
			fmt.Sprintf("workload.prompt_lengths=fixed(%d)", prompt),
			fmt.Sprintf("workload.output_lengths=fixed(%d)", output), "workload.concurrency=400",
			"workload.requests=400", "prefill.max_prompt_tokens=0")
		p := cfg[0]
		s, err := NewSimulator().prepare(&p)
		if err != nil {
			t.Fatal(err)
		}
		if s.server.Device, err = s.newDevice(); err != nil {
			t.Fatal(err)
		}
		server, err := sim.NewServer(s.server)
		if err != nil {
			t.Fatal(err)
		}
		var got batches
		if _, err := server.Run(context.Background(), s.stream, &got); err != nil {
			t.Fatal(err)
		}
		s.close()
		if want := int(c.kvGiB * (1 << 30) / float64(c.context)); got.largest != want {
			t.Errorf("%s: %d requests at once in %d steps, HBM holds %d", c.model, got.largest, got.steps,
				want)
		}
	}
}
