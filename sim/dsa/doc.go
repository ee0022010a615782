// Package dsa is block selection for dynamic sparse attention: which KV blocks each (layer, KV
// head) group attends to in a decode step.
//
// A score process (package traces) rates the candidate blocks of one group step by step; a
// Policy (policy.go) picks from the ratings; a Cycle (cycle.go) is the record of what it
// picked, made once and replayed; a Library (library.go) holds the cycles of every context
// length and hands each request's groups their own place in one. Algorithms that decide for the
// heads of a layer together go by a Ranking (ranking.go), from which each request's Layer
// (layer.go) decides step by step. Where a real device chooses, or a recording tells what one
// chose (recording.go), Latest (latest.go) hold a request's newest selections.
package dsa
