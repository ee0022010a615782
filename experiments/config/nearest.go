package config

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

// DidYouMean phrases Nearest for an error message.
func DidYouMean(word string, candidates []string) string {
	if n := Nearest(word, candidates); n != "" {
		return " (did you mean " + quote(n) + "?)"
	}
	return ""
}

// editDistance counts the insertions, deletions and substitutions of bytes and
// the swaps of two neighbours that make one word of the other, each at cost 1.
func editDistance(a, b string) int {
	var rows [3][]int // of the bytes of a so far, one less and two less
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := range len(a) {
		rows[0], rows[1], rows[2] = rows[2], rows[0], rows[1]
		row, above := rows[0], rows[1]
		row[0] = i + 1
		for j := range len(b) {
			d := above[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, rows[2][j-1]+1)
			}
			row[j+1] = d
		}
	}
	return rows[0][len(b)]
}
