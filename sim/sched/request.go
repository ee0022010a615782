package sched

import "github.com/sparseserve/sparseserve/sim/prefix"

// Request is one request as its scheduler sees it.
type Request struct {
	ID             int
	Prompt, Output int // tokens; Output >= 1
	Generated      int // tokens emitted so far

	// Prefill covers Target tokens: the prompt, and after a preemption also what had been
	// generated. Done counts tokens prefilled in all layers; within the running layer-segmented
	// prefill, Layer layers are complete for all tokens and Layer itself for LayerTokens of
	// them. The first Hit tokens come from the prefix cache.
	Target      int
	Hit         int
	Done        int
	Layer       int
	LayerTokens int

	// Lost is how many tokens had KV when the request was last preempted.
	Lost int

	Grant prefix.Grant

	running bool
}

// NewRequest returns a request at the start of its life.
func NewRequest(id, prompt, output int) *Request {
	return &Request{ID: id, Prompt: prompt, Output: output, Target: prompt}
}

// StartAfter skips the tokens that the prefix cache has, fewer than the prompt, of a prefill
// that has not begun.
func (r *Request) StartAfter(hit int) { r.Hit, r.Done = hit, hit }

// Resume has a request whose prefill has not begun prefill the tokens, too, that it emitted
// elsewhere.
func (r *Request) Resume(generated int) { r.Generated, r.Target = generated, r.Prompt+generated }

// Decoding says whether the prefill is complete.
func (r *Request) Decoding() bool { return r.Done == r.Target }

// Started says whether any part of the prefill has run.
func (r *Request) Started() bool { return r.Done > r.Hit || r.Layer > 0 || r.LayerTokens > 0 }

// Context returns the tokens whose KV exists after the request's next decode step: the prompt
// and every generated token, the newest of which is its input.
func (r *Request) Context() int { return r.Prompt + r.Generated }

// Finished says whether all tokens have been emitted.
func (r *Request) Finished() bool { return r.Generated >= r.Output }

// restart makes the request prefill everything again but what the prefix cache has, the
// generated tokens included (preemption by recomputation).
func (r *Request) restart() {
	if r.Decoding() {
		r.Lost = r.Context() - 1 // the newest token has none yet
	} else {
		r.Lost = max(r.Lost, r.Done)
	}
	r.Target = r.Prompt + r.Generated
	r.Done, r.Layer, r.LayerTokens = r.Hit, 0, 0
}
