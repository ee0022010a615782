package experiments

import "strings"

// Nearest returns the candidate that word starts, or else the closest one by
// edit distance, or "" when none is close enough to be a likely slip.
func Nearest(word string, candidates []string) string {
	if len(word) >= 3 {
		for _, c := range candidates {
			if strings.HasPrefix(c, word) {
				return c
			}
		}
	}
	best, bestDistance := "", len(word)/2+2
	for _, c := range candidates {
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// didYouMean phrases Nearest for an error message.
func didYouMean(word string, candidates []string) string {
	if n := Nearest(word, candidates); n != "" {
		return " (did you mean " + quote(n) + "?)"
	}
	return ""
}

// editDistance is Levenshtein's: insertions, deletions and substitutions of
// bytes, each at cost 1.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
