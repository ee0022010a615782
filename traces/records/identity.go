package records

import (
	"strconv"
	"strings"

	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// Columns of a record in CSV that say what prompts have in common.
const (
	promptIDColumn = "prompt_id" // requests of one id have the same prompt
	contentColumn  = "content"   // pieces, as in the project's own CSV
)

// identity reads what a record says of its prompts' content. The zero identity reads nothing.
type identity struct {
	column string
	at     int
	ids    map[string]prefix.Piece // of prompt_id
}

// newIdentity finds the column of a record; column is empty where there is none.
func newIdentity(t *rows.Table) identity {
	for _, column := range []string{contentColumn, promptIDColumn} {
		if at := t.Column(column); at >= 0 {
			return identity{column: column, at: at, ids: map[string]prefix.Piece{}}
		}
	}
	return identity{}
}

// of returns the content of a row's prompt, nil of a record without a column for it.
func (d *identity) of(fields []string, prompt int) (*prefix.Content, error) {
	if d.column == "" {
		return nil, nil
	}
	text := fields[d.at]
	switch {
	case text == "":
		return nil, rows.Wrong(d.column, text, "missing or empty; in a record with this column each "+
			"request says what its prompt is")
	case d.column == contentColumn:
		return traces.ParseContent(d.column, text, prompt)
	}
	piece, known := d.ids[text]
	if !known {
		text = strings.Clone(text) // not the whole line
		piece = prefix.Piece{ID: uint64(len(d.ids)) + 1, Tokens: prompt}
		d.ids[text] = piece
	}
	if piece.Tokens != prompt {
		return nil, rows.Wrong(d.column, text, "had "+rows.Plural(piece.Tokens, "prompt token")+
			" above and "+strconv.Itoa(prompt)+" here; requests of one id have the same prompt")
	}
	return &prefix.Content{Prompt: []prefix.Piece{piece}}, nil
}
