// Package prefix names the contents of prompts that begin alike.
//
// A prompt's content is a list of pieces (content.go). Its chain gives every prefix a key, by which
// memory finds its KV (index.go). stack.go computes the hits of LRU caches of every capacity for a
// trace, optimum.go the hits of the optimal cache of one capacity, which knows the trace.
package prefix
