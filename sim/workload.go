package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Arrival is one request as its trace gives it.
type Arrival struct {
	At     des.Time
	Prompt int    // tokens
	Output int    // tokens to generate, at least 1
	Cached int    // tokens of the prompt whose KV the server has already
	Set    string // dataset or model the request belongs to; may be empty
	// Session names the conversation that the request belongs to; may be empty.
	Session string
	// Content is what the prompt and the output contain; nil: not known, so that they share nothing.
	Content *prefix.Content
}

// Workload yields requests in order of arrival. Next returns false at the end.
type Workload interface {
	Next() (a Arrival, ok bool, err error)
}

// Sessions is a Workload whose requests may be turns of conversations: Next returns the first turn
// of each, Follow the one after.
type Sessions interface {
	Workload
	// Follow is told of every request that has its last token, or its rejection, and returns the
	// request that arrives because of it, not before; false: none does.
	Follow(ended Arrival, at des.Time, rejected bool) (next Arrival, ok bool, err error)
}

// ClosedLoop is a Workload of clients that each send a request when the last one has ended.
// Next is called once a client at the start, then once after each Ended, and returns when that
// client's request arrives: not before the end that made way for it, but in no order else. Where it
// has Sessions too, a client has a conversation, and Ended is called after the last turn of one.
type ClosedLoop interface {
	Workload
	Concurrency() int  // clients; 0 of a workload that is no closed loop after all
	Ended(at des.Time) // a client has its last token, or its rejection
}
