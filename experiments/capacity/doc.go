// Package capacity looks for goodput, the largest rate at which a server keeps its service level,
// and for what to buy for a load.
//
// The points of a sweep, whatever their rate and seed, are the Candidates (candidates.go). A
// Planner (planner.go) runs one search (search.go) for each: it doubles or halves the rate until
// one holds and one fails, bisects, checks beyond both ends, and narrows each seed's own bracket
// for an interval. Every run goes through a store. WritePlan (trail.go) writes what was found and
// every rate that was tried.
//
// Where the sweep has a [plan], candidates are Offers (purchase.go), each with the price of its
// GPUs (prices.go, prices.toml). Planner.Purchase finds the replicas that each needs for the load
// (load.go, fleet.go) while it can be as cheap as the cheapest found; a run ends once its outcome
// is certain (early.go), at once where a card lacks the arithmetic (floor.go), and serves for
// candidates whose other limits it does not come to (alike.go). Of the cheapest it finds how much
// more they serve and what they are short of (ceiling.go). The answer (answer.go, write.go) has
// what the prediction was held against (evidence.go, evidence.toml) and how vLLM is started
// (vllm.go).
package capacity
