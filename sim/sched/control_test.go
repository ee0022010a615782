package sched

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/sim/memory"
)

// limit is Algorithm 1's input with a fixed need for each request.
type limit struct {
	available int64
	need      map[int]int64
}

func (l *limit) Available() int64         { return l.available }
func (l *limit) Decode(r *Request) int64  { return l.need[r.ID] }
func (l *limit) Prefill(s *Segment) int64 { return l.need[s.Req.ID] }
func (l *limit) SavesInFlight() bool      { return false }

func (l *limit) CanRun(*Request, *Segment, []*Request) bool { return true }

// Algorithm 1: requests enter in order while their working sets fit; those left
// out keep their place, and a later, smaller one may still enter.
func TestAlgorithm1(t *testing.T) {
	cfg := chunked("vllm", 100, 1000)
	l := &limit{10, map[int]int64{1: 4, 2: 5, 3: 4, 4: 1}}
	cfg.Limit = l
	g := newRig(t, cfg)
	for id := 1; id <= 4; id++ {
		g.add(id, 4, 10)
	}
	g.expect(t,
		"P1:0-4@0-3 P2:0-4@0-3 P4:0-4@0-3", // 4+5+1; request 3 waits again, at the front
		"D1 D2 D4",
	)
	if w := g.s.waiting; len(w) != 1 || w[0].ID != 3 {
		t.Fatalf("%d waiting", len(w))
	}
	l.need[2] = 9 // request 2's working set grows past what is left
	g.expect(t, "D1 D4 P3:0-4@0-3", "D1 D4 D3")
	if b := g.s.Next(); len(b.SetBack) != 1 || b.SetBack[0].ID != 2 {
		t.Fatalf("set back: %v", b.SetBack)
	}
	l.need[1] = 99 // the first always runs
	g.expect(t, "D1")
}

// Of three new requests one fits. The others wait again in their order: the second is admitted
// before the third, where there is room for one of them.
func TestResetKeepsTheOrder(t *testing.T) {
	cfg := chunked("vllm", 100, 1000)
	l := &limit{10, map[int]int64{1: 9, 2: 5, 3: 5, 4: 5}}
	cfg.Limit = l
	g := newRig(t, cfg)
	for id := 1; id <= 4; id++ {
		g.add(id, 4, 3)
	}
	g.expect(t, "P1:0-4@0-3")
	l.need[1] = 1
	g.expect(t, "D1 P2:0-4@0-3", "D1 D2", "D2 P3:0-4@0-3", "D3 P4:0-4@0-3")
}

// Law 8: the working sets of an admitted batch fit, or it has one request.
// Law 4: every request finishes and all memory returns, whatever the policy.
func TestLaw4Law8RandomSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.IntRange(10, 60).Draw(t, "blocks")
		mode := rapid.SampledFrom([]string{"plain", "chunked", "layer", "layer-chunked"}).Draw(t, "plan")
		layers := rapid.IntRange(1, 5).Draw(t, "layers")
		cfg := Config{
			Base:        rapid.SampledFrom(BaseNames()).Draw(t, "base"),
			MaxRequests: rapid.IntRange(1, 8).Draw(t, "rmax"),
			MaxTokens:   rapid.IntRange(1, 64).Draw(t, "tmax"),
		}
		pool := pool(blocks)
		cfg.Memory = pool
		cfg.Planner = Planner{Mode: mode, Layers: layers, Chunk: cfg.MaxTokens,
			MaxInject: rapid.Int64Range(1, 200).Draw(t, "inject")}
		l := &limit{100, map[int]int64{}}
		if rapid.Bool().Draw(t, "control") {
			cfg.Limit = l
		}
		g, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var left []*Request
		for id := range n {
			r := NewRequest(id, rapid.IntRange(1, 4*blocks-8).Draw(t, "prompt"), 1, &memory.Grant{})
			r.Output = rapid.IntRange(1, 4*blocks-4-r.Prompt).Draw(t, "output")
			l.need[id] = rapid.Int64Range(0, 150).Draw(t, "need")
			g.Add(r)
			left = append(left, r)
		}
		for step := 0; len(left) > 0; step++ {
			if step > 20000 {
				t.Fatalf("%d of %d requests still unfinished", len(left), n)
			}
			b := g.Next()
			if b.Empty() {
				t.Fatal("requests wait and nothing runs")
			}
			var used int64
			for _, r := range b.Decodes {
				used += l.need[r.ID]
			}
			for i := range b.Prefills {
				used += l.need[b.Prefills[i].Req.ID]
			}
			if cfg.Limit != nil && used > l.available && len(b.Decodes)+len(b.Prefills) > 1 {
				t.Fatalf("law 8: working sets of %d in %d", used, l.available)
			}
			if len(b.Decodes)+len(b.Prefills) > cfg.MaxRequests {
				t.Fatalf("%d requests in a batch of at most %d", len(b.Decodes)+len(b.Prefills),
					cfg.MaxRequests)
			}
			done := append([]*Request(nil), b.Decodes...)
			for i := range b.Prefills {
				r := b.Prefills[i].Req
				g.Planner().Commit(&b.Prefills[i])
				if r.Decoding() {
					done = append(done, r)
				}
			}
			for _, r := range done {
				if r.Generated++; r.Finished() {
					g.Finish(r)
					for i := range left {
						if left[i] == r {
							left = append(left[:i], left[i+1:]...)
							break
						}
					}
				}
			}
		}
		if pool.Used() != 0 {
			t.Fatalf("%d blocks still granted", pool.Used())
		}
	})
}

// vLLM V1 admits no request in an iteration that preempts, though a chunk of request 2 would fit
// what its preemption leaves.
func TestVLLMV1AdmitsNobodyAfterPreemption(t *testing.T) {
	g := newRig(t, chunked("vllm-v1", 8, 5)) // 20 tokens
	g.add(1, 7, 8)
	g.add(2, 9, 4)
	g.expect(t,
		"P1:0-7@0-3 P2:0-1@0-3",
		"D1 P2:1-8@0-3",
		"!2 D1", // request 1 takes the last block, request 2 finds none
		"D1 P2:0-7@0-3",
	)
}

// tight is a limit under which requests can run only while few others hold
// memory: a request holds its need from its first step on.
type tight struct {
	limit
	g        *rig
	full     bool // nothing is available in addition to what is held
	inFlight bool
}

func (l *tight) Available() int64 {
	if l.full {
		return -1
	}
	return l.available
}

func (l *tight) SavesInFlight() bool { return l.inFlight }

func (l *tight) CanRun(r *Request, seg *Segment, preempted []*Request) bool {
	used := l.need[r.ID]
next:
	for _, other := range l.g.s.running {
		for _, gone := range preempted {
			if other == gone {
				continue next
			}
		}
		if other != r && other.Started() {
			used += l.need[other.ID]
		}
	}
	return used <= l.available
}

// When no request can run with what others hold: wait for saves, else preempt
// the youngest until the oldest can.
func TestLimitWaitsThenPreempts(t *testing.T) {
	cfg := chunked("vllm", 100, 1000)
	l := &tight{limit: limit{10, map[int]int64{1: 2, 2: 3, 3: 4}}}
	cfg.Limit = l
	g := newRig(t, cfg)
	l.g = g
	for id := 1; id <= 3; id++ {
		g.add(id, 4, 10)
	}
	g.expect(t, "P1:0-4@0-3 P2:0-4@0-3 P3:0-4@0-3", "D1 D2 D3")
	l.need[1], l.need[2], l.need[3], l.available = 6, 3, 7, 9
	l.full, l.inFlight = true, true
	g.add(4, 4, 10)
	l.need[4] = 20
	g.expect(t, "", "") // 6+3+7 in 9: no request can run until saves complete
	l.inFlight = false
	g.expect(t, "!3 D1") // request 2 may stay: 6+3
	if r := g.all[3]; g.s.waiting[0] != r || r.Target != 6 {
		t.Errorf("request 3 should wait at the front for all of its 6 tokens, has %d", r.Target)
	}
}
