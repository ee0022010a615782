package traces

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// shareGPT reads conversations as JSON, in arrays or as consecutive values, in one of two styles.
// The second is the style of vLLM's multi-turn benchmark:
//
//	{"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}, …]}
//	{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}, …]}
//
// A text may be a list of parts, as in requests to OpenAI. Each answer to a user is a turn; its
// prompt is all messages before it. Equal texts are equal content. Messages without text are
// skipped. Messages without an answer, and answers without a user message, are part of later
// prompts. No chat template is added.
type shareGPT struct {
	values *rows.Values
	count  tokenCounter
	seed   uint64

	n, empty   int // conversations, and conversations without a turn
	firstEmpty int // line of the first conversation without a turn
	pictured   int // messages with images
}

// speaker is the author of a message.
type speaker int

const (
	nobody speaker = iota
	user
	model
	system // also tools
)

var speakers = map[string]speaker{
	"human": user, "user": user, "gpt": model, "assistant": model, "chatgpt": model, "bing": model,
	"bard": model, "model": model, "system": system, "developer": system, "tool": system,
	"function": system,
}

func newShareGPT(values *rows.Values, o *options) *shareGPT {
	return &shareGPT{values: values, count: newTokenCounter(o.tokenizer), seed: o.seed}
}

func (d *shareGPT) talk() (*talk, error) {
	for {
		turns, err := d.read()
		switch {
		case err == io.EOF && d.n == 0:
			return nil, &rows.Error{File: d.values.Source().Name, Problem: "no conversations in it"}
		case err == io.EOF && d.n == d.empty:
			return nil, &rows.Error{File: d.values.Source().Name, Line: d.firstEmpty, Key: "conversations",
				Problem: "no question and its answer, nor in any other"}
		case err != nil:
			return nil, err
		}
		if d.n++; len(turns) > 0 {
			return given(fmt.Sprintf("c%d", d.n), turns, thinkRand(d.seed, d.n)), nil
		}
		if d.empty++; d.empty == 1 {
			d.firstEmpty = d.values.Line()
		}
	}
}

// message is a message of either style: an author and a text, or a list of parts.
type message struct {
	From    string          `json:"from"`
	Value   json.RawMessage `json:"value"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Images  json.RawMessage `json:"images"`
}

// read returns the turns of the next conversation.
func (d *shareGPT) read() (turns []turn, err error) {
	raw, err := d.values.Next()
	if err != nil {
		return nil, err
	}
	var v struct {
		Conversations []message `json:"conversations"`
		Messages      []message `json:"messages"`
	}
	if err = rows.Decode(raw, &v); err == nil && v.Conversations == nil && v.Messages == nil {
		err = rows.Wrong("conversations", "", "missing; a conversation is a list of messages of that "+
			"name, or messages")
	}
	if err != nil {
		return nil, d.values.Fault(err)
	}
	var asked []prefix.Piece
	question := false
	for i, m := range append(v.Conversations, v.Messages...) {
		who, pieces, err := d.content(m)
		switch {
		case err != nil:
			return nil, d.values.Fault(rows.Under(fmt.Sprintf("messages[%d]", i), err))
		case len(pieces) == 0:
		case who == model && question:
			turns = append(turns, turn{asked: asked, output: pieces[0].Tokens, answer: pieces[0].ID,
				pause: -1})
			asked, question = nil, false
		default:
			asked = append(asked, pieces...)
			question = question || who == user
		}
	}
	return turns, nil
}

// content returns the author and the content of a message.
func (d *shareGPT) content(m message) (who speaker, said []prefix.Piece, err error) {
	name := cmp.Or(m.From, m.Role)
	if who = speakers[name]; who == nobody {
		return who, nil, rows.Wrong("from", name, "whose is it? use human, gpt or system, or user, "+
			"assistant or tool")
	}
	raw, image := cmp.Or(string(m.Value), string(m.Content)), len(m.Images) > len("[]")
	text := ""
	var parts []struct{ Text string }
	switch {
	case strings.HasPrefix(raw, "["):
		err = rows.Decode([]byte(raw), &parts)
	case raw != "" && raw != "null":
		err = rows.Decode([]byte(raw), &text)
	}
	if err != nil {
		return who, nil, rows.Wrong("value", raw, "not a text")
	}
	for _, part := range parts {
		text += part.Text
		image = image || part.Text == ""
	}
	if image {
		d.pictured++
	}
	said, _, err = d.count.piece("value", who, text)
	return who, said, err
}

func (d *shareGPT) warnings() []warn.Warning {
	file := d.values.Source().Name
	w := []warn.Warning{estimated(file, d.count.tokenizer)}
	if d.empty > 0 {
		w = append(w, warn.New(warn.RowsLeft,
			"%s left out without a question and its answer: %s, the first conversations at line %d",
			rows.Plural(d.empty, "conversation"), file, d.firstEmpty).About("conversations"))
	}
	if d.pictured > 0 {
		w = append(w, warn.New(warn.TraceContent, "%s has images: their encoder's time and tokens are "+
			"left out: %s", rows.Plural(d.pictured, "message"), file).About("images"))
	}
	return append(w, unread(d.values, "conversations|messages|id")...)
}

// rest counts the remaining turns, up to the first unreadable conversation.
func (d *shareGPT) rest() (n int, err error) {
	for {
		turns, err := d.read()
		if err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n += len(turns)
	}
}

func (d *shareGPT) timed() bool  { return false }
func (d *shareGPT) texts() bool  { return true }
func (d *shareGPT) Close() error { return d.values.Source().Close() }
