package traces

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
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
// Each answer to a user is a turn; its prompt is all messages before it. Equal texts are equal
// content. Messages without text are skipped. Messages without an answer, and answers without a
// user message, are part of later prompts. No chat template is added.
type shareGPT struct {
	values *rows.Values
	count  tokenCounter
	seed   uint64

	n, empty   int      // conversations, and conversations without a turn
	firstEmpty int      // line of the first conversation without a turn
	dropped    []string // unread keys of the first conversation and its messages
}

// message is a message of either style: a role and a text.
type message struct {
	From    *string `json:"from"`
	Value   *string `json:"value"`
	Role    *string `json:"role"`
	Content *string `json:"content"`
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
	"bard": model, "model": model, "system": system, "tool": system, "function": system,
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
	if err == nil && v.Conversations == nil {
		v.Conversations = v.Messages
	}
	if err == nil {
		turns, err = d.turns(v.Conversations)
	}
	if err != nil {
		return nil, d.values.Fault(err)
	}
	if d.n == 0 && d.dropped == nil {
		d.dropped = []string{}
		d.drop(raw, "conversations|messages|id")
		var each struct{ Conversations, Messages []json.RawMessage }
		if json.Unmarshal(raw, &each) == nil {
			for _, m := range append(each.Conversations, each.Messages...) {
				d.drop(m, "from|value|role|content")
			}
		}
	}
	return turns, nil
}

// drop adds the keys of an object that are not known.
func (d *shareGPT) drop(object []byte, known string) {
	for _, key := range rows.Keys(object) {
		if !slices.Contains(strings.Split(known, "|"), key) && !slices.Contains(d.dropped, key) {
			d.dropped = append(d.dropped, key)
		}
	}
}

// turns converts messages to turns.
func (d *shareGPT) turns(messages []message) (turns []turn, err error) {
	var asked []prefix.Piece
	question := false
	for i, m := range messages {
		key, who, said := "from", m.From, m.Value
		if who == nil {
			key, who, said = "role", m.Role, m.Content
		}
		switch {
		case who == nil:
			return nil, rows.Wrong("from", "", fmt.Sprintf("missing of message %d; whose is it?", i+1))
		case speakers[*who] == nobody:
			return nil, rows.Wrong(key, *who, fmt.Sprintf("of message %d: whose is it? use human, gpt or "+
				"system, or user, assistant or tool", i+1))
		case said == nil:
			continue
		}
		pieces, tokens, err := d.count.piece(key, speakers[*who], *said)
		if err != nil {
			return nil, err
		} else if tokens == 0 {
			continue
		}
		if speakers[*who] != model || !question {
			asked = append(asked, pieces...)
			question = question || speakers[*who] == user
			continue
		}
		turns = append(turns, turn{asked: asked, output: tokens, answer: pieces[0].ID, pause: -1})
		asked, question = nil, false
	}
	return turns, nil
}

func (d *shareGPT) warnings() []warn.Warning {
	file := d.values.Source().Name
	w := []warn.Warning{estimated(file, d.count.tokenizer)}
	if d.empty > 0 {
		w = append(w, warn.New(warn.RowsLeft,
			"%s left out without a question and its answer: %s, the first conversations at line %d",
			rows.Plural(d.empty, "conversation"), file, d.firstEmpty).About("conversations"))
	}
	slices.Sort(d.dropped)
	return append(w, unread("key", d.dropped, file)...)
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
