// Package capacity looks for goodput: the largest rate at which a server keeps its service level.
//
// The points of a sweep, whatever their rate and seed, are the Candidates (candidates.go). A
// Planner (planner.go) runs one search (search.go) for each: it doubles or halves the rate until
// one holds and one fails, bisects, checks beyond both ends, and narrows each seed's own bracket
// for an interval. Every run goes through a store. WritePlan (trail.go) writes what was found and
// every rate that was tried.
package capacity
