package sched

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/memory"
)

// Batch is the set of requests that run in one iteration.
type Batch struct {
	Decodes   []*Request
	Prefills  []Segment
	Preempted []*Request // preempted: their KV was freed and they wait again
	Matched   []*Request // requests whose prefix hit has changed
	SetBack   []*Request // running requests that the working-set control left out
	Loading   []*Request // left the queue to load their cached prefix, until Landed
}

// Empty reports whether the batch has no decode and no prefill.
func (b *Batch) Empty() bool { return len(b.Decodes) == 0 && len(b.Prefills) == 0 }

// HasPrefill reports whether the batch has a prefill of the request.
func (b *Batch) HasPrefill(r *Request) bool {
	for i := range b.Prefills {
		if b.Prefills[i].Req == r {
			return true
		}
	}
	return false
}

// candidate is a request picked by the base policy, in the policy's order.
type candidate struct {
	req   *Request
	seg   Segment // if a prefill
	isNew bool    // admitted in this iteration
}

func (c *candidate) decode() bool { return c.seg.Req == nil }

// Config describes a scheduler.
type Config struct {
	Base        string // one of BaseNames
	MaxRequests int    // Rmax, requests in an iteration
	MaxTokens   int    // Tmax, tokens in an iteration
	Planner     Planner
	Memory      memory.Memory // grants KV space at admission and growth
	Limit       Limit         // limits the batch to the capacity of HBM; nil = no limit
	// Drafts are tokens that a decode verifies in addition to its newest; each has its own KV.
	Drafts int
	// Conservativeness scales the memory that base sglang reserves for outputs of running requests.
	Conservativeness float64
}

// Scheduler holds the waiting and running queues, both in arrival order.
type Scheduler struct {
	cfg     Config
	base    base
	waiting []*Request
	running []*Request
	loading int // requests that wait for a prefix load, in neither queue

	batch      Batch
	candidates []candidate
	rest       []candidate // scratch
	closed     bool        // admit no waiting requests
	held       bool        // the limit has excluded a candidate from this batch
	reserve    reserve     // of base sglang
}

// New returns a scheduler with empty queues.
func New(cfg Config) (*Scheduler, error) {
	for _, b := range bases {
		if b.name == cfg.Base {
			return &Scheduler{cfg: cfg, base: b, reserve: newReserve(cfg.Conservativeness)}, nil
		}
	}
	known := strings.Join(BaseNames(), ", ")
	return nil, fmt.Errorf("sched: no base scheduler %q; known: %s", cfg.Base, known)
}

// base is a policy that picks the scheduler's candidates.
type base struct {
	name string
	fill func(*Scheduler)
	grants
}

// grants is when the blocks of a prefill are allocated. Admission follows it, and so does the HBM
// that a chunked prefill holds with offloading.
type grants uint8

const (
	_           grants = iota // a base must name its grants
	wholePrompt               // all at admission
	byChunk                   // chunk by chunk
	// chunk by chunk, but a request is admitted only if free blocks hold its whole prompt
	byChunkWithRoom
	// chunk by chunk, but a request is admitted only if free blocks also hold its output and a share
	// of the outputs of running requests
	byChunkWithOutputs
)

// bases are the policies that a configuration can name. To add one, add a file and an entry
// here.
var bases = []base{
	{"vllm", (*Scheduler).vllm, wholePrompt},
	{"vllm-v1", (*Scheduler).vllmV1, byChunk},
	{"vllm-v1-whole", (*Scheduler).vllmV1, byChunkWithRoom},
	{"sarathi", (*Scheduler).sarathi, wholePrompt},
	{"sglang", (*Scheduler).sglang, byChunkWithOutputs},
}

// AllocatesByChunk reports whether the named base allocates the blocks of a prefill chunk by chunk.
func AllocatesByChunk(name string) bool {
	return slices.ContainsFunc(bases, func(b base) bool {
		return b.name == name && b.grants != wholePrompt
	})
}

// ReservesOutputs reports whether admissions of the named base leave memory for outputs.
func ReservesOutputs(name string) bool {
	return slices.ContainsFunc(bases, func(b base) bool {
		return b.name == name && b.grants == byChunkWithOutputs
	})
}

// BaseNames names the base policies.
func BaseNames() []string {
	var names []string
	for _, b := range bases {
		names = append(names, b.name)
	}
	return names
}

// Planner returns the planner that splits prefills.
func (s *Scheduler) Planner() *Planner { return &s.cfg.Planner }

// Add queues an arrived request.
func (s *Scheduler) Add(r *Request) { s.waiting = append(s.waiting, r) }

// Waiting and Running return numbers of requests. Waiting includes requests that load their
// prefix.
func (s *Scheduler) Waiting() int { return len(s.waiting) + s.loading }
func (s *Scheduler) Running() int { return len(s.running) }

// Held reports whether the limit excluded a candidate from the last batch.
func (s *Scheduler) Held() bool { return s.held }

// NextPrompt is the number of tokens that the first waiting request must compute; 0 if none
// waits.
func (s *Scheduler) NextPrompt() int {
	if len(s.waiting) == 0 {
		return 0
	}
	r := s.waiting[0]
	return r.Target - r.Hit
}

// Landed returns a request whose prefix has been loaded to the front of the queue, behind
// earlier such requests.
func (s *Scheduler) Landed(r *Request) {
	s.cfg.Memory.Landed(r.Grant)
	s.loading--
	at := 0
	for at < len(s.waiting) && s.waiting[at].Grant.Holds() {
		at++
	}
	s.waiting = slices.Insert(s.waiting, at, r)
}

// reclaim frees the loaded prefix of the last waiting request that has one, except the first
// request. It applies only if nothing runs and the first request finds no memory; it reports
// whether it freed memory.
func (s *Scheduler) reclaim() bool {
	if len(s.candidates) > 0 || len(s.running) > 0 || s.loading > 0 {
		return false
	}
	for i := len(s.waiting) - 1; i > 0; i-- {
		if r := s.waiting[i]; r.Grant.Holds() {
			s.cfg.Memory.Release(r.Grant, false)
			return true
		}
	}
	return false
}

// Finish removes a completed request and frees its memory.
func (s *Scheduler) Finish(r *Request) {
	s.unrun(r)
	s.reserve.full = false
	s.cfg.Memory.Release(r.Grant, true)
}

// Next forms the batch of the next iteration (Algorithm 1): the base policy picks candidates,
// and the limit keeps the candidates that fit. The batch is valid until the next call.
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

// match starts a waiting request's prefill after the tokens that the memory has cached. It
// returns the hit before the call.
func (s *Scheduler) match(r *Request) (before int) {
	before = r.Hit
	if hit := s.cfg.Memory.Match(r.Grant, r.Target); hit != before {
		r.StartAfter(hit)
		s.batch.Matched = append(s.batch.Matched, r)
	}
	return before
}

// decode makes a running request a candidate if the budget has its next tokens and they get blocks.
func (s *Scheduler) decode(r *Request, b *Budget) {
	if b.Tokens > s.cfg.Drafts && s.grow(r, r.Context()+s.cfg.Drafts, r.Context()) {
		b.Tokens -= 1 + s.cfg.Drafts
		s.candidates = append(s.candidates, candidate{req: r})
	}
}

// prefill makes the next segment of a running prefill a candidate if it gets blocks.
func (s *Scheduler) prefill(r *Request, b *Budget) {
	left := *b
	seg, ok := s.cfg.Planner.Next(r, &left)
	if ok && s.grow(r, seg.TokenTo, seg.TokenTo) {
		*b = left
		s.candidates = append(s.candidates, candidate{req: r, seg: seg})
	}
}

// grow allocates blocks for tokens of a running request. The planned step computes the first now.
// It preempts the last running requests if necessary, and returns false if it preempted r.
func (s *Scheduler) grow(r *Request, tokens, now int) bool {
	for !s.cfg.Memory.Grow(r.Grant, tokens, now) {
		if s.preempt(len(s.running)-1) == r {
			return false
		}
	}
	return true
}

// preempt preempts the i-th running request, which will recompute its KV, before others that wait.
func (s *Scheduler) preempt(i int) *Request {
	r := s.stop(i)
	s.wait(r)
	return r
}

// stop takes the i-th running request from the running ones and frees its KV.
func (s *Scheduler) stop(i int) *Request {
	r := s.running[i]
	s.running = append(s.running[:i], s.running[i+1:]...)
	r.running = false
	s.cfg.Memory.Release(r.Grant, false)
	r.restart()
	s.batch.Preempted = append(s.batch.Preempted, r)
	return r
}

// wait puts a request at the front of the queue.
func (s *Scheduler) wait(r *Request) { s.waiting = slices.Insert(s.waiting, 0, r) }

// run moves the first waiting request to the running ones.
func (s *Scheduler) run() {
	r := s.pop()
	r.running = true
	s.running = append(s.running, r)
}

// pop removes the first waiting request.
func (s *Scheduler) pop() *Request {
	r := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	return r
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
