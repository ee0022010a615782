// Package dsa is block selection for dynamic sparse attention: which KV blocks each (layer, KV
// head) group attends to in a decode step.
//
// A score process (package score) scores the candidate blocks of one group step by step (Sheet,
// library.go). A Policy (policy.go, listed in policies.go) selects blocks by score. A Cycle
// (cycle.go) records the selections of a family once. A Library (library.go) replays the cycle
// for the groups of every request, each from its own phase. A policy that decides for all heads
// of a layer uses a Ranking (ranking.go), from which each request's Layer (layer.go) decides
// step by step. When a device selects, or a recording is replayed (recording_writer.go,
// recording.go), Latest (latest.go) holds a request's newest selections.
package dsa
