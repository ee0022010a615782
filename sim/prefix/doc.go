// Package prefix names the contents of prompts that begin alike.
//
// A prompt's content is a list of pieces (content.go). Its chain gives every prefix a key, by which
// memory finds its KV (index.go).
package prefix
