// Package prefix shares the KV of prompts that begin alike.
//
// A prompt's content is a list of pieces (content.go), whose chain gives every prefix a key.
// stack.go counts what caches of every capacity would have of a trace.
package prefix
