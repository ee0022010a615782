package sched

import "github.com/sparseserve/sparseserve/sim/memory"

// Request is the scheduler's view of one request.
type Request struct {
	ID             int
	Prompt, Output int // tokens; Output >= 1
	Generated      int // tokens emitted so far

	// Prefill covers Target tokens: the prompt and, after a preemption, the tokens generated
	// before it. Done is the number of tokens prefilled in all layers. In a running
	// layer-segmented prefill, layers below Layer are complete for all tokens, and Layer itself
	// is complete for LayerTokens tokens. The first Hit tokens come from the prefix cache.
	Target      int
	Hit         int
	Done        int
	Layer       int
	LayerTokens int

	// Lost is the number of tokens that had KV at the request's last preemption.
	Lost int

	Grant *memory.Grant

	running bool
}

// NewRequest returns a request that waits for its first prefill. Its grant, which holds nothing,
// may have been another request's.
func NewRequest(id, prompt, output int, grant *memory.Grant) *Request {
	return &Request{ID: id, Prompt: prompt, Output: output, Target: prompt, Grant: grant}
}

// StartAfter skips the first hit tokens, which the prefix cache holds, in a prefill that has
// not begun. hit must be less than the prompt.
func (r *Request) StartAfter(hit int) { r.Hit, r.Done = hit, hit }

// Resume sets the tokens that a request generated elsewhere. Its prefill, which must not have
// begun, also covers these tokens.
func (r *Request) Resume(generated int) { r.Generated, r.Target = generated, r.Prompt+generated }

// Decoding reports whether the prefill is complete.
func (r *Request) Decoding() bool { return r.Done == r.Target }

// Started reports whether any part of the prefill has run.
func (r *Request) Started() bool { return r.Done > r.Hit || r.Layer > 0 || r.LayerTokens > 0 }

// Context returns the number of tokens with KV after the request's next decode step: the prompt
// and every generated token, the newest of which is the step's input.
func (r *Request) Context() int { return r.Prompt + r.Generated }

// Finished reports whether all tokens have been emitted.
func (r *Request) Finished() bool { return r.Generated >= r.Output }

// restart makes the request prefill again after a preemption (recomputation). The prefill
// covers the generated tokens, but not the prefix cache's hits.
func (r *Request) restart() {
	if r.Decoding() {
		r.Lost = r.Context() - 1 // the newest token has no KV yet
	} else {
		r.Lost = max(r.Lost, r.Done)
	}
	r.Target = r.Prompt + r.Generated
	r.Done, r.Layer, r.LayerTokens = r.Hit, 0, 0
}
