// Package prefix shares the KV of prompts that begin alike.
//
// A prompt's content is a list of pieces (content.go), whose chain gives every prefix a key.
package prefix
