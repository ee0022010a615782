// Package reuse computes how much of a trace's prompts prefix caches of any size find.
//
// stack.go has the hits of LRU caches of every capacity, optimum.go those of the optimal cache of
// one capacity, which knows the trace.
package reuse
