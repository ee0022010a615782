package sim

import (
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// Arrival is one request of a trace.
type Arrival struct {
	At     des.Time
	Prompt int    // tokens
	Output int    // tokens to generate, at least 1
	Cached int    // prompt tokens whose KV is already cached
	Set    string // dataset or model the request belongs to; may be empty
	// Session names the conversation that the request belongs to; may be empty.
	Session string
	// Content is the content of prompt and output; nil: unknown, nothing is shared.
	Content *prefix.Content
}

// Workload yields requests in order of arrival. Next returns false at the end.
type Workload interface {
	Next() (a Arrival, ok bool, err error)
}

// Sessions is a Workload whose requests may be turns of conversations. Next returns the first turn
// of each conversation, Follow the later turns.
type Sessions interface {
	Workload
	// Follow is called for every request that completed or was rejected. It returns the request that
	// arrives as a consequence, not before at; false if there is none.
	Follow(ended Arrival, at des.Time, rejected bool) (next Arrival, ok bool, err error)
}

// ClosedLoop is a Workload of clients that each send a request when their last one has ended. Next
// is called once per client at the start, then once after each Ended, and returns that client's
// next request: not before the end that caused it, but otherwise in any order. If the workload also
// implements Sessions, a client runs conversations, and Ended is called after the last turn of one.
type ClosedLoop interface {
	Workload
	Concurrency() int  // number of clients; 0 if the workload is no closed loop
	Ended(at des.Time) // a client's request completed or was rejected
}
