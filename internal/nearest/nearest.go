// Package nearest suggests the name meant by a misspelt one.
package nearest

import (
	"fmt"
	"strings"
)

// longest is the maximum length of a name that is matched.
const longest = 64

// Name returns the known name that word begins, or else the one with the fewest edits, or "" if
// none is close enough for a typing error. Names are in lower case.
func Name(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	word = strings.ToLower(word)
	if len(word) >= 3 {
		for _, k := range known {
			if strings.HasPrefix(k, word) {
				return k
			}
		}
	}
	best, least := "", 1+max(2, len(word)/3)
	for _, k := range known {
		if d := editDistance(word, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// Meant is the end of an error message about a word: the known name that was meant, if any.
func Meant(word string, known []string) string {
	if n := Name(word, known); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}

// editDistance counts the insertions, deletions and substitutions of bytes and the swaps of two
// neighbours that convert one word into the other, each at cost 1.
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
