package main

import (
	"bytes"
	"strings"
)

// syntax is what tells the comments of a language from the rest.
type syntax struct {
	comment string    // to the end of the line
	block   [2]string // begin and end a comment; empty: there are none
	quotes  string    // each ends with its line at the latest, and has escapes
	long    []string  // quotes of any length, without escapes
	// bytes that no space, comment or quote begins with
	plain [256]bool
}

var (
	goSyntax   = newSyntax("//", [2]string{"/*", "*/"}, `"'`, "`") // and C's
	tomlSyntax = newSyntax("#", [2]string{}, `"'`, `"""`, `'''`)
)

func newSyntax(comment string, block [2]string, quotes string, long ...string) *syntax {
	s := &syntax{comment: comment, block: block, quotes: quotes, long: long}
	for c := range s.plain {
		s.plain[c] = c > ' ' && byte(c) != comment[0] && strings.IndexByte(quotes+"`", byte(c)) < 0
	}
	return s
}

// meaning appends a text without comments, and with one space or newline for all space between
// words.
func (s *syntax) meaning(kept, text []byte) []byte {
	from, gap := len(kept), byte(0) // before the next word; 0: none
	for len(text) > 0 {
		n, word := 1, true
		switch c := text[0]; {
		case s.plain[c]: // a run of words with one space or newline between them stays as it is
			for n < len(text) && (s.plain[text[n]] || s.between(text[n:])) {
				n++
			}
		case c <= ' ':
			word = false
			if gap != '\n' {
				gap = c
			}
		default:
			var comment bool
			if n, comment = s.marked(text); comment {
				word = false
				if gap != '\n' && bytes.IndexByte(text[:n], '\n') >= 0 {
					gap = '\n'
				} else if gap == 0 {
					gap = ' '
				}
			}
		}
		if word {
			switch {
			case gap == '\n' && len(kept) > from:
				kept = append(kept, '\n')
			case gap != 0 && len(kept) > from:
				kept = append(kept, ' ')
			}
			gap = 0
			kept = append(kept, text[:n]...)
		}
		text = text[n:]
	}
	return kept
}

// between says whether a text begins with one space or newline and a word.
func (s *syntax) between(text []byte) bool {
	return len(text) > 1 && (text[0] == ' ' || text[0] == '\n') && s.plain[text[1]]
}

// marked returns the length of the comment, quoted text or single byte that a text begins with.
func (s *syntax) marked(text []byte) (n int, comment bool) {
	switch {
	case hasPrefix(text, s.comment):
		return until(text, "\n", 0), true
	case s.block[0] != "" && hasPrefix(text, s.block[0]):
		return until(text, s.block[1], len(s.block[0])), true
	}
	for _, q := range s.long {
		if hasPrefix(text, q) {
			return until(text, q, len(q)), false
		}
	}
	if strings.IndexByte(s.quotes, text[0]) >= 0 {
		return quoted(text), false
	}
	return 1, false
}

// quoted returns the length of the quoted text that a text begins with.
func quoted(text []byte) int {
	for n := 1; n < len(text); n++ {
		switch text[n] {
		case '\\':
			n++
		case text[0]:
			return n + 1
		case '\n':
			return n
		}
	}
	return len(text)
}

// until returns the length up to the end of the first such mark from an offset on.
func until(text []byte, mark string, from int) int {
	if i := bytes.Index(text[from:], []byte(mark)); i >= 0 {
		return from + i + len(mark)
	}
	return len(text)
}

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}
