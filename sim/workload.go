package sim

import "github.com/sparseserve/sparseserve/sim/des"

// Arrival is one request as its trace gives it.
type Arrival struct {
	At     des.Time
	Prompt int    // tokens
	Output int    // tokens to generate, at least 1
	Cached int    // tokens of the prompt whose KV the server has already
	Set    string // dataset or model the request belongs to; may be empty
}

// Workload yields requests in order of arrival. Next returns false at the end.
type Workload interface {
	Next() (a Arrival, ok bool, err error)
}
