package traces

import (
	"math"
	"unicode"
)

// tokenCounter estimates the tokens of texts like LongBench's dialogues. It counts words, and
// Chinese, Japanese and Korean characters, and multiplies them by a tokenizer's ratios in samsum
// (English chats) and vcsum (Chinese meetings).
type tokenCounter struct {
	tokenizer      Tokenizer
	perWord, perCJ float64
}

func newTokenCounter(t Tokenizer) tokenCounter {
	table := loadTable()
	return tokenCounter{t, findSet(table, "samsum").prompt(t).perUnit,
		findSet(table, "vcsum").prompt(t).perUnit}
}

// CountTokens returns a function that estimates the tokens of a text.
func CountTokens(t Tokenizer) func(text string) int { return newTokenCounter(t).tokens }

// firstCJK is below all Han, Hiragana, Katakana and Hangul characters.
const firstCJK = 0x1100

// tokens returns the tokens of a text; 0 only for an empty text.
func (c tokenCounter) tokens(text string) int {
	words, characters, within := 0, 0, false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			within = false
		case r >= firstCJK && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana,
			unicode.Hangul):
			characters++
			within = false
		case !within:
			words++
			within = true
		}
	}
	if words+characters == 0 {
		return 0
	}
	return max(1, int(math.Round(c.perWord*float64(words)+c.perCJ*float64(characters))))
}
