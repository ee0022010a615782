package records

import (
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// CSV columns of a record that describe shared prompts.
const (
	promptIDColumn = "prompt_id" // requests with the same id have the same prompt
	contentColumn  = "content"   // pieces, as in the project's own CSV
)

// identity are the prompts of a record by their prompt_id.
type identity map[string]prefix.Piece

// of returns the content of a row's prompt; nil for a record without such a column.
func (d identity) of(t *rows.Reader, rec rows.Record, prompt int) (*prefix.Content, error) {
	column := contentColumn
	if !t.Has(column) {
		column = promptIDColumn
	}
	text := rec.Text(column)
	switch {
	case !t.Has(column):
		return nil, nil
	case text == "":
		return nil, rows.Wrong(column, text, "missing or empty; in a record with this column each "+
			"request needs a value")
	case column == contentColumn:
		return traces.ParseContent(column, text, prompt)
	}
	piece, known := d[text]
	if !known {
		text = strings.Clone(text) // do not retain the whole line
		piece = prefix.Piece{ID: uint64(len(d)) + 1, Tokens: prompt}
		d[text] = piece
	}
	if piece.Tokens != prompt {
		return nil, rows.Wrong(column, text, "had "+rows.Plural(piece.Tokens, "prompt token")+
			" above and "+strconv.Itoa(prompt)+" here; requests of one id have the same prompt")
	}
	return &prefix.Content{Prompt: []prefix.Piece{piece}}, nil
}

// chunk is the bytes of text per piece of a prompt.
const chunk = 64

// identifyTexts makes prompts share the common prefixes of their texts, if every request has a
// text. All prompts have the same average tokens per byte. Earlier answers in a prompt count as
// prompt text, which only later prompts can share.
func identifyTexts(all []sent) {
	bytes, tokens := 0, 0
	for i := range all {
		s := &all[i]
		if s.text = promptText(s.text); s.text == "" {
			return
		}
		bytes, tokens = bytes+len(s.text), tokens+s.Prompt
	}
	perByte := float64(tokens) / float64(max(1, bytes))
	if perByte*chunk < 1 {
		return
	}
	ids := map[string]uint64{}
	id := func(text string) uint64 {
		if _, known := ids[text]; !known {
			ids[text] = uint64(len(ids)) + 1
		}
		return ids[text]
	}
	for i := range all {
		s := &all[i]
		s.Content = &prefix.Content{Prompt: chunksOf(s.text, s.Prompt, perByte, id)}
	}
}

// promptText returns the prompt of a request body: its messages, as JSON, or its prompt. A text
// that is not a request body is itself the prompt.
func promptText(request string) string {
	v, err := rows.NewObject([]byte(request))
	if err != nil {
		return request
	}
	for _, key := range []string{"messages", "prompt", "input"} {
		if own := string(v.Value(key)); own != "" {
			return own
		}
	}
	return promptText(string(v.Value("body")))
}

// chunksOf returns one piece per chunk of a prompt's text, and a piece for the rest, which only
// equal texts share.
func chunksOf(text string, prompt int, perByte float64,
	id func(string) uint64) (all []prefix.Piece) {
	sum := 0
	for end := chunk; end <= len(text); end += chunk {
		next := int(perByte * float64(end))
		if next > prompt {
			break
		}
		all = append(all, prefix.Piece{ID: id(text[end-chunk : end]), Tokens: next - sum})
		sum = next
	}
	if sum < prompt {
		all = append(all, prefix.Piece{ID: id(text + "\x00"), Tokens: prompt - sum})
	}
	return all
}
