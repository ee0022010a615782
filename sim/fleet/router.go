package fleet

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// Candidate is the router's view of a replica that takes requests.
type Candidate struct {
	Replica int // replica number
	sim.Load
	Sent int64 // first tokens of the prompt that the replica was sent before; router prefix
}

// View is the input of a router: the replicas that take requests, at least one, in order of their
// numbers, and the replica of the previous request, initially -1.
type View struct {
	Candidates []Candidate
	Last       int
}

// Router assigns the requests of a fleet to replicas. Pick returns an index into View.Candidates.
// It depends only on its arguments.
type Router struct {
	Name, About string
	Pick        func(*View, *sim.Arrival) int
	remembers   bool // it reads Candidate.Sent
}

// routers lists the routers that a configuration can name. A new router needs a function and an
// entry here.
var routers = []Router{
	{RoundRobin, "each replica in turn", roundRobin, false},
	{"least-tokens", "the replica with the fewest tokens to prefill and to emit", leastTokens, false},
	{"least-working-set", "the replica whose requests need the least KV in HBM: what their decodes " +
		"select with " +
		"offloading, all without", leastWorkingSet, false},
	{"session", "always the same replica for a session of the trace, while it takes requests; " +
		"requests without one " +
		"as round-robin", bySession, false},
	{"prefix", "the replica with the fewest tokens to compute: its own, less the tokens of the " +
		"prompt that it was sent before", byPrefix, true},
}

// RoundRobin is the default router.
const RoundRobin = "round-robin"

// Routers lists the routers.
func Routers() []Router { return slices.Clone(routers) }

// RouterNames returns the names of all routers.
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
	return nil, fmt.Errorf("fleet: no router %q; known: %s", name, strings.Join(RouterNames(), ", "))
}

func roundRobin(v *View, _ *sim.Arrival) int {
	for i := range v.Candidates {
		if v.Candidates[i].Replica > v.Last {
			return i
		}
	}
	return 0
}

func leastTokens(v *View, _ *sim.Arrival) int {
	return least(v, func(c *Candidate) int64 { return c.Tokens })
}

func leastWorkingSet(v *View, _ *sim.Arrival) int {
	return least(v, func(c *Candidate) int64 { return c.WorkingSet })
}

// least returns the index of the candidate with the lowest value, the first one on a tie.
func least(v *View, of func(*Candidate) int64) int {
	best := 0
	for i := range v.Candidates {
		if of(&v.Candidates[i]) < of(&v.Candidates[best]) {
			best = i
		}
	}
	return best
}

// bySession uses rendezvous hashing (Thaler and Ravishankar 1998): the replica with the highest
// hash of session and replica wins, so that the loss of a replica moves only its own sessions.
func bySession(v *View, a *sim.Arrival) int {
	if a.Session == "" {
		return roundRobin(v, a)
	}
	session := fnv.New64a()
	session.Write([]byte(a.Session))
	best, highest := 0, uint64(0)
	for i := range v.Candidates {
		if h := des.Hash(session.Sum64(), uint64(v.Candidates[i].Replica)); h > highest {
			best, highest = i, h
		}
	}
	return best
}
