package sched

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim/memory"
)

// rig drives a scheduler without a device: every step takes no time.
type rig struct {
	s   *Scheduler
	all map[int]*Request
}

func newRig(t testing.TB, cfg Config) *rig {
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{s, map[int]*Request{}}
}

func (g *rig) add(id, prompt, output int) {
	r := NewRequest(id, prompt, output, &memory.Grant{})
	g.all[id] = r
	g.s.Add(r)
}

// step forms a batch, carries it out and describes it: D for decodes, P for
// prefills as id:tokens@layers, preemptions as !id.
func (g *rig) step() string {
	b := g.s.Next()
	var out []string
	for _, r := range b.Preempted {
		out = append(out, fmt.Sprintf("!%d", r.ID))
	}
	for _, r := range b.Decodes {
		out = append(out, fmt.Sprintf("D%d", r.ID))
	}
	for _, p := range b.Prefills {
		out = append(out, fmt.Sprintf("P%d:%d-%d@%d-%d", p.Req.ID, p.TokenFrom, p.TokenTo, p.LayerFrom,
			p.LayerTo))
	}
	decodes := append([]*Request(nil), b.Decodes...)
	for i := range b.Prefills {
		r := b.Prefills[i].Req
		g.s.Planner().Commit(&b.Prefills[i])
		if r.Decoding() {
			decodes = append(decodes, r)
		}
	}
	for _, r := range decodes {
		if r.Generated++; r.Finished() {
			g.s.Finish(r)
		}
	}
	return strings.Join(out, " ")
}

func (g *rig) expect(t *testing.T, want ...string) {
	t.Helper()
	for i, w := range want {
		if got := g.step(); got != w {
			t.Fatalf("iteration %d: got %q, want %q", i+1, got, w)
		}
	}
}

// pool is memory of blocks of 4 tokens in which requests share nothing.
func pool(blocks int) *memory.Pool {
	p := memory.NewPool(int64(blocks), 4, 0.01, nil)
	p.Unshared = true
	return p
}

func chunked(base string, tokens, blocks int) Config {
	return Config{
		Base: base, MaxRequests: 256, MaxTokens: tokens,
		Planner: Planner{Mode: "chunked", Layers: 3, Chunk: tokens},
		Memory:  pool(blocks),
	}
}

// Figure 9 of SparseServe: three layers, segment size 1, three decoding
// requests together with one prefill request; prefill runs one layer an iteration and
// decodes from the fourth on.
func TestFigure9LayerSegmentedPrefill(t *testing.T) {
	cfg := chunked("vllm", 2048, 1000)
	g := newRig(t, cfg)
	for id := 1; id <= 3; id++ {
		g.add(id, 1, 100)
	}
	g.s.cfg.Planner = Planner{Mode: "layer", Layers: 3, MaxInject: 1 << 20}
	g.step() // requests 1 to 3 prefill
	g.s.cfg.Planner.MaxInject = 4
	g.add(4, 4, 10)
	g.expect(t,
		"D1 D2 D3 P4:0-4@0-1",
		"D1 D2 D3 P4:0-4@1-2",
		"D1 D2 D3 P4:0-4@2-3",
		"D1 D2 D3 D4",
	)
}

func TestLayerSegmentsFollowMaxInject(t *testing.T) {
	cfg := chunked("vllm", 2048, 1000)
	cfg.Planner = Planner{Mode: "layer", Layers: 8, MaxInject: 100}
	g := newRig(t, cfg)
	g.add(1, 30, 2)  // 3 layers an iteration
	g.add(2, 5, 2)   // takes what is left: 10 token-layers, 2 layers
	g.add(3, 200, 2) // one layer exceeds the limit: one at a time, alone
	g.expect(t,
		"P1:0-30@0-3 P2:0-5@0-2",
		"P1:0-30@3-6 P2:0-5@2-4",
		"P1:0-30@6-8 P2:0-5@4-8",
		"D1 D2 P3:0-200@0-1",
	)
}

func TestLayerChunksWithinOneLayer(t *testing.T) {
	cfg := chunked("vllm", 2048, 1000)
	cfg.Planner = Planner{Mode: "layer-chunked", Layers: 2, MaxInject: 100}
	g := newRig(t, cfg)
	g.add(1, 150, 2)
	g.expect(t, "P1:0-100@0-1", "P1:100-150@0-1", "P1:0-100@1-2", "P1:100-150@1-2", "D1")
}

// One token budget: decodes first by arrival, then the running prefill, then
// new requests.
func TestVLLMChunkedBudget(t *testing.T) {
	g := newRig(t, chunked("vllm", 10, 1000))
	g.add(1, 4, 3)
	g.add(2, 12, 2)
	g.add(3, 3, 1)
	g.expect(t,
		"P1:0-4@0-3 P2:0-6@0-3",
		"D1 P2:6-12@0-3 P3:0-3@0-3", // request 3 emits its only token here
		"D1 D2",
		"",
	)
}

// Admission takes all blocks of the prompt at once, first come first served: a
// small request after one that does not fit waits too.
func TestVLLMAdmissionAllocatesWholePrompt(t *testing.T) {
	g := newRig(t, chunked("vllm", 8, 10)) // 40 tokens
	g.add(1, 16, 2)
	g.add(2, 28, 2)
	g.add(3, 4, 2)
	g.expect(t,
		"P1:0-8@0-3",
		"P1:8-16@0-3",
		"D1",         // request 1 ends; 2 needs 7 of the 6 free blocks until then
		"P2:0-8@0-3", // 3 waits for its tokens, not its memory
		"P2:8-16@0-3", "P2:16-24@0-3",
		"P2:24-28@0-3 P3:0-4@0-3",
	)
}

// A decode that finds no block preempts the last running request, which waits
// at the front and prefills prompt and generated tokens again.
func TestVLLMPreemptsLastByRecomputation(t *testing.T) {
	g := newRig(t, chunked("vllm", 100, 4)) // 16 tokens; watermark rounds to 0
	g.add(1, 7, 8)
	g.add(2, 6, 4)
	g.add(3, 4, 1)
	g.expect(t,
		"P1:0-7@0-3 P2:0-6@0-3", // 2 + 2 blocks; 3 waits
		"D1 D2",                 // contexts 8 and 7
		"!2 D1",                 // context 9 needs a third block
	)
	if r := g.all[2]; r.Target != 8 || r.Generated != 2 || g.s.waiting[0] != r {
		t.Fatalf("preempted request: target %d, generated %d, front of queue %v", r.Target, r.Generated,
			g.s.waiting[0] == r)
	}
	g.expect(t, "D1", "D1", "D1", "D1", "D1", "P2:0-8@0-3 P3:0-4@0-3", "D2")
}

func TestVLLMWithoutChunkingPrefillsAlone(t *testing.T) {
	cfg := chunked("vllm", 10, 1000)
	cfg.Planner.Mode = "plain"
	g := newRig(t, cfg)
	g.add(1, 6, 3)
	g.add(2, 20, 2) // longer than the budget: alone
	g.expect(t, "P1:0-6@0-3", "P2:0-20@0-3", "D1 D2", "D1")
}

// Sarathi puts all decodes before any prefill, whatever came first.
func TestSarathiDecodesFirst(t *testing.T) {
	g := newRig(t, chunked("sarathi", 10, 1000))
	g.add(1, 15, 2)
	g.expect(t, "P1:0-10@0-3")
	g.add(2, 3, 5)
	g.expect(t, "P1:10-15@0-3 P2:0-3@0-3", "D1 D2", "D2")
}

// vLLM V1 takes running requests in queue order, prefills too, and allocates
// chunk by chunk: the second request starts before all its blocks are free.
func TestVLLMV1AllocatesChunkByChunk(t *testing.T) {
	g := newRig(t, chunked("vllm-v1", 8, 9)) // 36 tokens
	g.add(1, 12, 3)
	g.add(2, 28, 2)
	g.expect(t,
		"P1:0-8@0-3",
		"P1:8-12@0-3 P2:0-4@0-3",
		"D1 P2:4-11@0-3",
		"D1 P2:11-18@0-3",
	)
	v := newRig(t, chunked("vllm", 8, 9))
	v.add(1, 12, 3)
	v.add(2, 28, 2)
	v.expect(t, "P1:0-8@0-3", "P1:8-12@0-3", "D1", "D1", "P2:0-8@0-3")
}

// From 0.19 on vLLM admits a request only when its whole prompt has free blocks. Seven blocks are
// not free beside the first request's three, so the second waits for its end. Six are, and are
// not reserved: the second starts, and its blocks are allocated chunk by chunk.
func TestWholePromptMustHaveRoom(t *testing.T) {
	g := newRig(t, chunked("vllm-v1-whole", 8, 9)) // 36 tokens
	g.add(1, 12, 3)
	g.add(2, 28, 2)
	g.expect(t, "P1:0-8@0-3", "P1:8-12@0-3", "D1", "D1", "P2:0-8@0-3")
	g = newRig(t, chunked("vllm-v1-whole", 8, 9))
	g.add(1, 12, 3)
	g.add(2, 24, 2)
	g.expect(t, "P1:0-8@0-3", "P1:8-12@0-3 P2:0-4@0-3", "D1 P2:4-11@0-3", "D1 P2:11-18@0-3")
}
