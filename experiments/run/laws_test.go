package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Law 2: weights, runtime, activations, logits and what the server may use for
// KV add up to no more than the card, for every built-in model that fits a
// built-in card, under every preset. (That the server keeps to its part is
// tested in sim.)
func TestLaw2TheCardHoldsItAll(t *testing.T) {
	fits := 0
	type machine struct{ gpu, engine string }
	gpus := map[machine]*hw.Profile{} // files of thousands of lines
	load := func(name, engine string) *hw.Profile {
		key := machine{name, engine}
		if gpus[key] == nil {
			gpu, err := hw.Load(name, engine, nil)
			if err != nil {
				t.Fatal(err)
			}
			gpus[key] = gpu
		}
		return gpus[key]
	}
	for _, gpuName := range hw.CardNames() {
		for _, modelName := range []string{"deepseek-v3.2", "gemma2-9b", "glm-5.2", "gpt-oss-20b",
			"llama3-8b", "lwm-7b", "qwen3-30b-a3b", "qwen3-32b-fp8"} {
			model, err := llm.Load(modelName)
			if err != nil {
				t.Fatal(err)
			}
			for _, preset := range config.Presets() {
				spec := preset.Spec
				gpu := load(gpuName, spec.Engine)
				kv, err := config.KVBudget(gpu, &model, &spec)
				if err != nil {
					continue
				}
				fits++
				plan, err := gpu.KVBudget(&model, spec.Utilisation, spec.MaxTokens, spec.MaxRequests)
				if err != nil {
					t.Fatal(err)
				}
				if sum := plan.Weights + plan.Runtime + plan.Activations + plan.Logits +
					kv; sum > plan.Usable || plan.Usable > plan.Size {
					t.Errorf("%s on %s under %s: %d bytes planned of %d usable of %d", modelName, gpuName,
						preset.Name, sum, plan.Usable, plan.Size)
				}
				spec.KVGiB = 0.5
				if kv, err := config.KVBudget(gpu, &model, &spec); err == nil && (kv != 1<<29 || kv > plan.KV) {
					t.Errorf("%s on %s: kv_gib = 0.5 gives %d bytes, %d are left", modelName, gpuName, kv, plan.KV)
				}
			}
		}
	}
	if fits < 50 {
		t.Errorf("only %d combinations looked at", fits)
	}
}

// Law 9: the same configuration and seed give the same bytes, whatever the
// number of workers and in which order they share the recorded selections.
func TestLaw9SimulatedBytes(t *testing.T) {
	requests := "workload.requests=12"
	if slow {
		requests = "workload.requests=2"
	}
	c := mustLoad(t, "", requests, "workload.rate=[0.1,0.3]", "output.steps=true")
	var first map[string]string
	for i, workers := range []int{1, 4, 4} {
		dir := t.TempDir()
		if _, err := runAll(t, dir, c, workers, NewSimulator().Run); err != nil {
			t.Fatal(err)
		}
		files := testkit.Tree(t, dir)
		if i == 0 {
			first = files
			if n := len(files); n != 7 {
				t.Fatalf("%d files: %v", n, slices.Sorted(maps.Keys(files)))
			}
			continue
		}
		for path, text := range first {
			if files[path] != text {
				t.Errorf("%s differs with %d workers", path, workers)
			}
		}
		if len(files) != len(first) {
			t.Errorf("%d files with %d workers, %d with one", len(files), workers, len(first))
		}
	}
}

// Law 11: more HBM, a faster link or a smaller cost of a block never makes the
// mean TTFT of the same trace worse beyond noise.
//
// The same trace leaves no sampling noise. What remains is that of list
// scheduling: a step that ends earlier may just miss an arrival, or join
// requests to another batch, and a request that then no longer fits HBM may be
// overtaken and stand by for the whole prompt of another (sim has the law where
// no such thing can happen, without any allowance). No bound for one request
// follows; but the runs here are fixed ones, not drawn, and over 40 requests
// such shifts stay within the 3 % allowed. Each change below is large, so that a
// model broken in this respect loses more.
func TestLaw11MoreIsNotSlower(t *testing.T) {
	if slow {
		t.Skip("compares long runs; the laws are checked in shorter ones")
	}
	simulator := NewSimulator()
	ttft := func(gpu string, sets ...string) float64 {
		c := mustLoad(t, "", append([]string{"workload.requests=40", "workload.rate=0.3", "gpu=" + gpu,
			"system.engine=vllm-0.5", // whose kernels the variants change
			`longbench.datasets=["qasper","multifieldqa_en","multi_news","gov_report"]`}, sets...)...)
		sum, err := simulator.Run(t.Context(), c[0], Sink{Requests: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		if sum.Rejected > 0 {
			t.Fatalf("%d requests rejected: means of different requests do not compare", sum.Rejected)
		}
		return sum.TTFT.Mean
	}
	check := func(what string, gain bool, values []float64) {
		t.Helper()
		t.Logf("%s: mean TTFT %.4g s", what, values)
		for i := 1; i < len(values); i++ {
			if values[i] > 1.03*values[i-1] {
				t.Errorf("%s: mean TTFT goes from %.4g to %.4g s", what, values[i-1], values[i])
			}
		}
		if gain && values[len(values)-1] >= values[0] {
			t.Errorf("%s: no gain over the whole range: %.4g", what, values)
		}
	}
	systems := []string{"vllm-so", "sparseserve"}
	if testing.Short() {
		systems = systems[:1] // each takes 5 s
	}
	for _, system := range systems {
		preset := "system.preset=" + system
		var hbm []float64
		for _, gib := range []float64{11, 15, 20} {
			hbm = append(hbm, ttft("a100-40gb", preset, fmt.Sprintf("system.kv_gib=%g", gib)))
		}
		check(system+", more HBM", true, hbm)

		var link []float64
		for _, factor := range []float64{1, 2, 4} {
			link = append(link, ttft(variant(t, func(p *hw.Profile) {
				scale(factor, &p.Link.Nominal, &p.Link.H2D, &p.Link.D2H, &p.Link.DuplexCopy,
					&p.Link.DuplexKernel, &p.Save.GPURate)
				for i := range p.Load.Flash {
					scale(factor, &p.Load.Flash[i].Figure)
				}
				for i := range p.Save.Scatter {
					scale(factor, &p.Save.Scatter[i].Figure)
				}
			}), preset, "system.kv_gib=11"))
		}
		check(system+", a faster link", true, link)

		var block []float64
		for _, factor := range []float64{1, 0.5, 0.1} {
			block = append(block, ttft(variant(t, func(p *hw.Profile) {
				scale(factor, &p.Load.MemcpyCall, &p.Load.FlashLaunch, &p.Load.FlashFloor, &p.Save.MemcpyCall,
					&p.Save.FlashCall)
			}), preset, "system.kv_gib=11"))
		}
		// FlashH2D and FlashD2H have none worth the name: nothing to gain.
		check(system+", a smaller cost of a block", system == "vllm-so", block)
	}
}

func scale(factor float64, figures ...*hw.Figure) {
	for _, f := range figures {
		f.Value *= factor
	}
}

// variant writes a changed a100-40gb and returns its path.
func variant(t *testing.T, change func(*hw.Profile)) string {
	t.Helper()
	p, err := hw.Load("a100-40gb", "vllm-0.5", nil)
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	path := filepath.Join(t.TempDir(), "card.toml")
	if err := p.Write(path, "vllm-0.5"); err != nil {
		t.Fatal(err)
	}
	return path
}

// Law 9 for every kind of system and load: selections, tiers, hot buffers, drafts, experts spread
// over GPUs, fleets, sessions. Points that run in parallel and share inputs and records give the
// same bytes as in sequence in the reverse order.
func TestLaw9EveryKindOfSystem(t *testing.T) {
	effectFiles(t)
	kinds := map[string][]string{
		"dense": dense, "in HBM": inHBM, "offload": offload, "by layer": byLayer, "psa": psa,
		"infinigen": infini, "recall": recall, "indexed": indexed, "hot": hot, "sessions": sessions,
		"tiers": tiers, "hits": hits, "fleet": pair, "mix": mix,
		"sparseserve-psa": and(psa, "system.preset=sparseserve-psa", "prefill.max_inject=900"),
		"query heads":     and(byLayer, "selection.per=query_head"),
		"two GPUs":        and(dense, "system.tensor_parallel=2"),
		"spread experts":  and(indexed, "system.tensor_parallel=2", "system.expert_parallel=2"),
		"drafts": and(indexed, "model=mtp.toml", "system.preset=vllm-0.15", "speculation.tokens=2",
			"speculation.acceptance=0.6"),
		"whole admission": and(dense, "system.engine=vllm-0.19"),
		"a tree":          and(tiers, "prefix_cache.mode=radix"),
		"recomputed":      and(tiers, "prefix_cache.load=recompute", "prefix_cache.write=back"),
		"failing": and(pair, "fleet.fail=[[0.01, 0, 1]]", "fleet.router=least-tokens",
			"prefix_cache.mode=vllm", "system.scheduler=vllm-v1"),
		"closed": and(offload, "workload.concurrency=3"),
		"block sparse": and(dense, "prefill.attention=block-sparse", "prefill.chunk_tokens=512",
			"system.max_tokens=512"),
	}
	var points []config.Point
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		sets, said := slices.Clone(effectBase), strings.Join(kinds[name], " ")
		if !strings.Contains(said, "workload.trace=") {
			sets = append(sets, "workload.prompt_lengths=uniform(600,1500)",
				"workload.output_lengths=fixed(12)")
		}
		if !strings.Contains(said, "concurrency") {
			sets = append(sets, "workload.rate=40")
		}
		c, err := config.Load("", append(sets, kinds[name]...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := c[0]
		p.Name = name
		points = append(points, p)
	}
	run := func(workers int, points []config.Point) map[string]string {
		var mu sync.Mutex
		files := map[string]string{}
		x := NewSimulator()
		grid := Grid{Workers: workers, Run: func(ctx context.Context, p config.Point,
			sink Sink) (metrics.Summary, error) {
			var rows bytes.Buffer
			sink.Requests = &rows
			sum, err := x.Run(ctx, p, sink)
			text, bad := json.Marshal(sum)
			mu.Lock()
			defer mu.Unlock()
			files[p.Name] = string(text) + rows.String()
			return sum, errors.Join(err, bad)
		}}
		if _, err := grid.Do(t.Context(), points); err != nil {
			t.Fatal(err)
		}
		return files
	}
	one := run(1, points)
	slices.Reverse(points)
	many := run(4, points)
	for name := range kinds {
		if one[name] != many[name] || len(one[name]) < 100 {
			t.Errorf("law 9: %s differs with the workers:\n%s\n%s", name, one[name], many[name])
		}
	}
}
