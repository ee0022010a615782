package traces

import (
	"hash/fnv"
	"io"
	"math"
	"unicode"

	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
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

// piece returns the content of a text and its tokens; a text without tokens has no content. The
// error is one of the key, if the text is too long.
func (c tokenCounter) piece(key string, who speaker, text string) ([]prefix.Piece, int, error) {
	n := c.tokens(text)
	switch {
	case n == 0:
		return nil, 0, nil
	case n > rows.MaxTokens:
		return nil, 0, rows.Wrong(key, text, "too long a text")
	}
	return []prefix.Piece{{ID: textID(who, text), Tokens: n}}, n, nil
}

// textID returns a text's id, its FNV-1a hash. Equal texts of a speaker are equal content.
func textID(who speaker, text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte{byte(who)})
	io.WriteString(h, text)
	return max(1, h.Sum64())
}

// readPrompt counts the tokens of a prompt.
func readPrompt(o *options) func(rows.Record, *row) error {
	count := newTokenCounter(o.tokenizer)
	return func(rec rows.Record, r *row) error {
		pieces, n, err := count.piece("prompt", user, rec.Text("prompt"))
		if err == nil && n == 0 {
			err = rows.Wrong("prompt", rec.Text("prompt"), "an empty text")
		}
		r.Prompt, r.Content = n, &prefix.Content{Prompt: pieces}
		return err
	}
}

// readTurns counts the tokens of a turn of AIPerf. A system text before the first turn is a part of
// it.
func readTurns(o *options) func(rows.Record, *row) error {
	count := newTokenCounter(o.tokenizer)
	var system []prefix.Piece
	session := "" // of the system text
	return func(rec rows.Record, r *row) (err error) {
		output := rec.Text("output_length")
		if r.Session == session {
			r.asked = system
		}
		system, session = nil, r.Session
		texts := []string{rec.Text("text")}
		for _, raw := range rec.List("texts") {
			texts = append(texts, rows.TextOf(raw))
		}
		for _, text := range texts {
			pieces, _, err := count.piece("text", user, text)
			if err != nil {
				return err
			}
			r.asked = append(r.asked, pieces...)
		}
		switch {
		case rec.Text("role") == "system" && output == "":
			system, r.skip = r.asked, part
			return nil
		case r.asked == nil:
			return rows.Wrong("turns", "", "a turn without text")
		case output == "":
			return rows.Wrong("output_length", "", "missing of a turn; AIPerf then takes --osl of its "+
				"command line: write it into each turn")
		}
		r.Output, err = rows.Tokens("output_length", output, 1)
		return err
	}
}
