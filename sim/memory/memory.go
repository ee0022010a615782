package memory

import (
	"iter"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Memory grants memory for the KV of requests: a Pool, a Radix, or a Hot over a Pool.
type Memory interface {
	// Match returns the number of cached first tokens of a prefill that has not begun, less than
	// target. The next Admit or Grow uses this match.
	Match(g *Grant, target int) int
	// Fetch reports whether the matched prefix must be loaded before the prefill begins, and
	// allocates memory for it. ok is false without enough memory. Landed signals the end of the load.
	Fetch(g *Grant) (loads, ok bool)
	Landed(g *Grant)
	// Admit allocates memory for the given tokens and keeps some memory free. Grow extends a
	// grant and may use all memory. The planned step computes the first now tokens; KV of the others
	// may be dropped.
	Admit(g *Grant, tokens, now int) bool
	Grow(g *Grant, tokens, now int) bool
	// Room reports whether Grow to tokens would succeed now. It allocates nothing.
	Room(g *Grant, tokens int) bool
	// Release frees a grant. ended is true if the request has ended, and false if it will prefill
	// again.
	Release(g *Grant, ended bool)

	Fits(tokens int) bool // whether a request could ever be admitted
	Used() int64          // blocks
	Total() int64
	Tokens(blocks int64) int64
	// Check verifies the memory against the grants of all requests.
	Check(grants iter.Seq[*Grant]) error

	// Of a prefix cache: Read adds a reader in the step that is prepared. Reread, called after all
	// Read calls, returns the repeated reads of the step in tokens. Lost returns the numbers of
	// evicted blocks, and of evicted chunks of the tiers below HBM.
	Read(*Grant)
	Reread() (tokens int64)
	Lost() (hbm, dram, ssd int64)
	// Of tiers below HBM: Plan sets the planning time and releases what has been saved by then. Writes
	// returns the chunks to write from HBM, and to write to SSD, since the last call of Written, which
	// sets the times when they arrive. Kept returns the time when the oldest save ends and its blocks
	// are released; ok is false if there is none or the time is unknown.
	Plan(now des.Time)
	Writes() (dram, ssd int)
	Written(dram, ssd des.Time)
	Kept() (at des.Time, ok bool)
}
