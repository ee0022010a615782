// Package pattern is sparse prefill: which keys each query head attends to while a prompt is
// prefilled, as MInference and the systems that it is compared with decide it.
//
// A Head (pattern.go) is a pattern with its sizes; Kept and Pairs (keys.go) count what it
// computes of a causal row and of a chunk of rows. A Mix (mix.go) says what the heads of each
// layer are, from a published mix, from a file in MInference's format (file.go), or one pattern
// for all; Heads (heads.go) has them one by one, for devices that compute.
package pattern
