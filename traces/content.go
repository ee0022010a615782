package traces

import (
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// The project's own CSV has content as id:tokens per piece, separated by spaces, and > with the id
// of the output's text at the end, if it has one: "7:512 8:512 9:88 >12".

// readPieces reads the content of a row.
func readPieces(*options) func(rows.Record, *row) error {
	return func(rec rows.Record, r *row) (err error) {
		r.Content, err = ParseContent("content", rec.Text("content"), r.Prompt)
		return err
	}
}

// contentText formats content; "" for nil.
func contentText(c *prefix.Content) string {
	if c == nil {
		return ""
	}
	var parts []string
	for _, p := range c.Prompt {
		parts = append(parts, strconv.FormatUint(p.ID, 10)+":"+strconv.Itoa(p.Tokens))
	}
	if c.Answer != 0 {
		parts = append(parts, ">"+strconv.FormatUint(c.Answer, 10))
	}
	return strings.Join(parts, " ")
}

// ParseContent parses the format of contentText. prompt is the tokens of the prompt.
func ParseContent(key, text string, prompt int) (*prefix.Content, error) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, nil
	}
	c, sum := &prefix.Content{}, 0
	for i, f := range fields {
		name, answer := strings.CutPrefix(f, ">")
		name, count, piece := strings.Cut(name, ":")
		id, err := strconv.ParseUint(name, 10, 64)
		tokens, bad := strconv.Atoi(count)
		switch {
		case err != nil, answer == piece, answer && (id == 0 || i < len(fields)-1):
			return nil, rows.Wrong(key, f, "want pieces as id:tokens and, at the end, > and the "+
				"name of the output's text, not 0, or nothing: 7:512 8:88 >9")
		case answer:
			c.Answer = id
			continue
		case bad != nil || tokens < 1 || tokens > rows.MaxTokens:
			return nil, rows.Wrong(key, f, "not a piece of a whole number of tokens, at least 1")
		}
		if sum += tokens; sum > prompt {
			return nil, rows.Wrong(key, f, "goes beyond the prompt, which has "+rows.Plural(prompt, "token"))
		}
		c.Prompt = append(c.Prompt, prefix.Piece{ID: id, Tokens: tokens})
	}
	return c, nil
}
