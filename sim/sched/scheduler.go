package sched

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Batch is what runs in one iteration.
type Batch struct {
	Decodes   []*Request
	Prefills  []Segment
	Preempted []*Request // lost their KV to others and wait again
	Matched   []*Request // whose prefill begins elsewhere than before: the prefix cache changed
	SetBack   []*Request // running requests that the working-set control left out
	Loading   []*Request // left the queue to have their cached prefix loaded, until Landed
}

// Empty says whether nothing runs.
func (b *Batch) Empty() bool { return len(b.Decodes) == 0 && len(b.Prefills) == 0 }

// HasPrefill says whether a prefill of the request runs.
func (b *Batch) HasPrefill(r *Request) bool {
	for i := range b.Prefills {
		if b.Prefills[i].Req == r {
			return true
		}
	}
	return false
}

// candidate is a request picked by the base policy, in its order.
type candidate struct {
	req   *Request
	seg   Segment // when prefill
	isNew bool    // admitted in this iteration
}

func (c *candidate) decode() bool { return c.seg.Req == nil }

// Memory grants requests room for their KV: kv.Budget counts blocks, prefix.Pool shares those of
// prompts that begin alike.
type Memory interface {
	// Match returns how many of the first tokens of a prefill that has not begun need no
	// computation, fewer than all; the next Admit or Grow builds on it.
	Match(g *prefix.Grant, target int) int
	// Fetch says whether what Match found has to be loaded before the prefill begins, and grants the
	// room for it; ok is false where there is none. Landed says that it has been.
	Fetch(g *prefix.Grant) (loads, ok bool)
	Landed(g *prefix.Grant)
	// Admit grants room for the given tokens and keeps some free. Grow extends a grant, down to the
	// last room. The step that is planned computes the first now tokens, or all that Grow is given.
	Admit(g *prefix.Grant, tokens, now int) bool
	Grow(g *prefix.Grant, tokens int) bool
	// Room reports whether Grow to tokens would find free blocks now. It grants nothing.
	Room(g *prefix.Grant, tokens int) bool
	// Release takes a grant back, of a request that has ended or that will prefill again.
	Release(g *prefix.Grant, ended bool)
}

// Config describes a scheduler.
type Config struct {
	Base        string // of BaseNames
	MaxRequests int    // Rmax, requests in an iteration
	MaxTokens   int    // Tmax, tokens in an iteration
	Planner     Planner
	Memory      Memory // grants KV space at admission and growth
	Limit       Limit  // thins the batch to what HBM holds; nil = no limit
	Drafts      int    // tokens that a decode verifies beyond its newest, each with KV of its own
}

// Scheduler holds the waiting and running queues, both in order of arrival.
type Scheduler struct {
	cfg     Config
	base    base
	waiting queue
	running []*Request
	loading int // requests that wait for their prefix, in neither queue

	batch      Batch
	candidates []candidate
	rest       []candidate // scratch
	closed     bool        // admits nobody: running requests only
	most       int         // requests that ran at a time
	limited    bool        // the limit has kept a candidate out
	held       bool        // of this batch
}

// New returns a scheduler with empty queues.
func New(cfg Config) (*Scheduler, error) {
	for _, b := range bases {
		if b.name == cfg.Base {
			return &Scheduler{cfg: cfg, base: b}, nil
		}
	}
	known := strings.Join(BaseNames(), ", ")
	return nil, fmt.Errorf("sched: no base scheduler %q; known: %s", cfg.Base, known)
}

// base is a policy that fills the scheduler's candidates.
type base struct {
	name string
	fill func(*Scheduler)
	// byChunk: a prefill is allocated blocks chunk by chunk, not all at admission.
	byChunk bool
	// wholePrompt, of byChunk: a request is admitted only when free blocks hold its whole prompt.
	wholePrompt bool
}

// bases are the policies that a configuration can name. Another is a file of its own and an entry
// here.
var bases = []base{
	{name: "vllm", fill: (*Scheduler).vllm},
	{name: "vllm-v1", fill: (*Scheduler).vllmV1, byChunk: true},
	{name: "vllm-v1-whole", fill: (*Scheduler).vllmV1, byChunk: true, wholePrompt: true},
	{name: "sarathi", fill: (*Scheduler).sarathi},
}

// AllocatesByChunk reports whether the named base allocates the blocks of a prefill chunk by chunk.
func AllocatesByChunk(name string) bool {
	return slices.ContainsFunc(bases, func(b base) bool { return b.name == name && b.byChunk })
}

// BaseNames names the base policies.
func BaseNames() []string {
	var names []string
	for _, b := range bases {
		names = append(names, b.name)
	}
	return names
}

// Planner returns how prefills are split.
func (s *Scheduler) Planner() *Planner { return &s.cfg.Planner }

// Add queues an arrived request.
func (s *Scheduler) Add(r *Request) { s.waiting.pushBack(r) }

// Waiting and Running count requests.
func (s *Scheduler) Waiting() int { return s.waiting.len() + s.loading }
func (s *Scheduler) Running() int { return len(s.running) }

// Most is how many requests ran at a time so far, at most. Limited says whether the limit has ever
// kept a candidate out of a batch.
func (s *Scheduler) Most() int     { return s.most }
func (s *Scheduler) Limited() bool { return s.limited }

// Held says whether the limit kept a candidate out of the last batch.
func (s *Scheduler) Held() bool { return s.held }

// NextPrompt is the tokens that the first of the waiting requests needs room for; 0 without any.
func (s *Scheduler) NextPrompt() int {
	if s.waiting.len() == 0 {
		return 0
	}
	r := s.waiting.front()
	return r.Target - r.Hit
}

// Landed puts a request whose prefix has been loaded back to the front of the queue, behind those
// that came back before it.
func (s *Scheduler) Landed(r *Request) {
	s.cfg.Memory.Landed(&r.Grant)
	s.loading--
	s.waiting.pushFront(r)
	q := s.waiting.items[s.waiting.head:]
	for i := 0; i+1 < len(q) && q[i+1].Grant.Table.Holds(); i++ {
		q[i], q[i+1] = q[i+1], q[i]
	}
}

// reclaim takes back what the last waiting request has loaded, but for the first one's, where
// nothing runs and the first one finds no room.
func (s *Scheduler) reclaim() bool {
	if len(s.candidates) > 0 || len(s.running) > 0 || s.loading > 0 {
		return false
	}
	q := s.waiting.items[s.waiting.head:]
	for i := len(q) - 1; i > 0; i-- {
		if q[i].Grant.Table.Holds() {
			s.cfg.Memory.Release(&q[i].Grant, false)
			return true
		}
	}
	return false
}

// Finish removes a completed request and returns its memory.
func (s *Scheduler) Finish(r *Request) {
	s.unrun(r)
	s.cfg.Memory.Release(&r.Grant, true)
}

// Next forms the batch of the next iteration (Algorithm 1: the base policy picks candidates,
// the limit keeps those that fit). The batch is valid until the next call.
func (s *Scheduler) Next() *Batch {
	s.batch = Batch{
		Decodes:   s.batch.Decodes[:0],
		Prefills:  s.batch.Prefills[:0],
		Preempted: s.batch.Preempted[:0],
		Matched:   s.batch.Matched[:0],
		SetBack:   s.batch.SetBack[:0],
		Loading:   s.batch.Loading[:0],
	}
	s.candidates, s.held = s.candidates[:0], false
	s.base.fill(s)
	s.control()
	return &s.batch
}

// match has a waiting request's prefill begin after what the memory has of it, and returns where
// it was to begin before.
func (s *Scheduler) match(r *Request) (before int) {
	before = r.Hit
	if hit := s.cfg.Memory.Match(&r.Grant, r.Target); hit != before {
		r.StartAfter(hit)
		s.batch.Matched = append(s.batch.Matched, r)
	}
	return before
}

// decode makes a running request a candidate if its next tokens have blocks, preempting the last
// running requests if necessary, and reports whether it still runs.
func (s *Scheduler) decode(r *Request) bool {
	for !s.cfg.Memory.Grow(&r.Grant, r.Context()+s.cfg.Drafts) {
		if !s.preemptLast(r) {
			return false
		}
	}
	s.candidates = append(s.candidates, candidate{req: r})
	return true
}

// preemptLast preempts the last running request; it reports whether that was another than r.
func (s *Scheduler) preemptLast(r *Request) bool {
	return s.preempt(len(s.running)-1) != r
}

// preempt preempts the i-th running request by recomputation.
func (s *Scheduler) preempt(i int) *Request {
	r := s.running[i]
	s.running = append(s.running[:i], s.running[i+1:]...)
	r.running = false
	s.cfg.Memory.Release(&r.Grant, false)
	r.restart()
	s.waiting.pushFront(r)
	s.batch.Preempted = append(s.batch.Preempted, r)
	return r
}

func (s *Scheduler) run(r *Request) {
	r.running = true
	s.running = append(s.running, r)
	s.most = max(s.most, len(s.running))
}

func (s *Scheduler) unrun(r *Request) {
	for i, x := range s.running {
		if x == r {
			s.running = append(s.running[:i], s.running[i+1:]...)
			break
		}
	}
	r.running = false
}

// queue is a double-ended queue of requests.
type queue struct {
	items []*Request
	head  int
}

func (q *queue) len() int        { return len(q.items) - q.head }
func (q *queue) front() *Request { return q.items[q.head] }

func (q *queue) pushBack(r *Request) {
	if q.head > 64 && q.head*2 > len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

func (q *queue) popFront() *Request {
	r := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	return r
}

func (q *queue) pushFront(r *Request) {
	if q.head == 0 {
		q.items = append(make([]*Request, 64, 64+2*len(q.items)), q.items...)
		q.head = 64
	}
	q.head--
	q.items[q.head] = r
}
