// Package pattern is sparse prefill: which keys each query head attends to during a prefill, in
// MInference and the systems that it is compared with.
//
// A Head (pattern.go) is a pattern with its sizes. Kept and Pairs (keys.go) count the keys and
// pairs that it computes for a causal row and for a chunk of rows. A Mix (mix.go) lists the
// heads of each layer: from a published mix, from a file in MInference's format (file.go), or
// one pattern for all. Heads (heads.go) lists them individually, for devices that compute.
package pattern
