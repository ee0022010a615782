// Package capacity searches for goodput, the largest rate at which a server keeps its service
// level, and the cheapest servers to buy for a load.
//
// The points of a sweep, without rate and seed, are the Candidates (candidates.go). A Planner
// (planner.go) runs one search (search.go) per candidate, by attempts (attempt.go): it brackets the
// rate (package bracket), checks beyond both ends, and narrows each seed's own bracket for an
// interval. Every run goes through a store. GoodputFiles (trail.go) holds the results and every
// tried rate.
//
// If the sweep has a [plan], candidates are Offers (purchase.go), each with the price of its GPUs
// (prices.go, prices.toml). Planner.Purchase finds the number of replicas that each needs for the
// load (load.go, fleet.go), as long as it can be as cheap as the cheapest found. For the cheapest
// candidates it finds the spare load and the limiting resources (ceiling.go). The answer
// (answer.go, write.go) reports which measurements support the prediction (evidence.go,
// evidence.toml) and how to start the engine (serve.go).
package capacity
