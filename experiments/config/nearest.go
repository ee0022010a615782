package config

import "github.com/sparseserve/sparseserve/internal/nearest"

// DidYouMean names the nearest candidate for an error message.
func DidYouMean(word string, candidates []string) string {
	if n := nearest.Name(word, candidates); n != "" {
		return " (did you mean " + quote(n) + "?)"
	}
	return ""
}
