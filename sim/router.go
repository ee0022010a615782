package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Candidate is a replica that takes requests, as a router sees it.
type Candidate struct {
	Replica    int   // which one
	Requests   int   // there that have not ended
	Tokens     int64 // that they have yet to prefill and to emit
	WorkingSet int64 // bytes of KV: with offloading what their decodes select, else all of it
}

// View is what a router sees: the replicas that take requests, of which there is at least one, in
// the order of their numbers, and the replica of the request before, at first -1.
type View struct {
	Candidates []Candidate
	Last       int
}

// Router shares the requests of a fleet among its replicas. Pick returns a place in
// View.Candidates; it depends on nothing but its arguments.
type Router struct {
	Name, About string
	Pick        func(*View, *Arrival) int
}

// routers are those that a configuration can name. Another is a function and an entry here.
var routers = []Router{
	{RoundRobin, "each replica in turn", roundRobin},
	{"least-tokens", "the replica with the fewest tokens to prefill and to emit", leastTokens},
	{"least-working-set", "the replica whose requests need the least KV in HBM: what their decodes " +
		"select with " +
		"offloading, all without", leastWorkingSet},
	{"session", "always the same replica for a session of the trace, while it takes requests; " +
		"requests without one " +
		"as round-robin", bySession},
}

// RoundRobin names the router of a fleet that names none.
const RoundRobin = "round-robin"

// Routers lists the routers.
func Routers() []Router { return slices.Clone(routers) }

// RouterNames names them.
func RouterNames() []string {
	names := make([]string, len(routers))
	for i, r := range routers {
		names[i] = r.Name
	}
	return names
}

func routerNamed(name string) (*Router, error) {
	for i := range routers {
		if routers[i].Name == name {
			return &routers[i], nil
		}
	}
	return nil, fmt.Errorf("sim: no router %q; known: %s", name, strings.Join(RouterNames(), ", "))
}

func roundRobin(v *View, _ *Arrival) int {
	for i := range v.Candidates {
		if v.Candidates[i].Replica > v.Last {
			return i
		}
	}
	return 0
}

func leastTokens(v *View, _ *Arrival) int {
	return least(v, func(c *Candidate) int64 { return c.Tokens })
}

func leastWorkingSet(v *View, _ *Arrival) int {
	return least(v, func(c *Candidate) int64 { return c.WorkingSet })
}

// least returns the candidate with the lowest figure, of equal ones the first.
func least(v *View, of func(*Candidate) int64) int {
	best := 0
	for i := range v.Candidates {
		if of(&v.Candidates[i]) < of(&v.Candidates[best]) {
			best = i
		}
	}
	return best
}

// bySession is rendezvous hashing (Thaler and Ravishankar 1998): the highest hash of session and
// replica wins, so that a replica that goes moves no session but its own.
func bySession(v *View, a *Arrival) int {
	if a.Session == "" {
		return roundRobin(v, a)
	}
	session, best, highest := hashText(a.Session), 0, uint64(0)
	for i := range v.Candidates {
		if h := des.Hash(session, uint64(v.Candidates[i].Replica)); h > highest {
			best, highest = i, h
		}
	}
	return best
}

// hashText is FNV-1a.
func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
