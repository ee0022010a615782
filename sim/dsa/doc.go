// Package dsa is block selection for dynamic sparse attention: which KV blocks each (layer, KV
// head) group attends to in a decode step.
//
// Follow one selection: a score process (package score) rates the candidate blocks of one
// group step by step (Sheet, library.go); a Policy (policy.go; policies.go lists them) picks
// from the ratings; a Cycle (cycle.go) records the picks of a family once, and a Library
// (library.go) replays it to every request's groups, each from its own phase. Policies that
// decide for the heads of a layer together use a Ranking (ranking.go), from which each
// request's Layer (layer.go) decides step by step. Where a device selects, or a recording is
// replayed (recording_writer.go, recording.go), Latest (latest.go) hold a request's newest
// selections.
package dsa
