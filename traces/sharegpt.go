package traces

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"

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

	n, empty   int // conversations, and conversations without a turn
	firstEmpty int // line of the first conversation without a turn
	dropped    droppedKeys
}

// conversationKeys are the keys of a conversation, messageKeys the keys of its messages.
var (
	conversationKeys = []string{"conversations", "messages", "id"}
	messageKeys      = []string{"from", "value", "role", "content"}
)

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
	var each struct{ Conversations, Messages []json.RawMessage }
	if !d.dropped.seen && json.Unmarshal(raw, &each) == nil {
		d.dropped.of(raw, conversationKeys)
		for _, m := range append(each.Conversations, each.Messages...) {
			d.dropped.add(m, messageKeys)
		}
	}
	return turns, nil
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
		tokens, id := d.count.tokens(*said), textID(speakers[*who], *said)
		switch {
		case tokens == 0:
			continue
		case tokens > rows.MaxTokens:
			return nil, rows.Wrong(key, *who, "too long a text")
		}
		if speakers[*who] != model || !question {
			asked = append(asked, prefix.Piece{ID: id, Tokens: tokens})
			question = question || speakers[*who] == user
			continue
		}
		turns = append(turns, turn{asked: asked, output: tokens, answer: id, pause: -1})
		asked, question = nil, false
	}
	return turns, nil
}

// textID returns a text's id, its FNV-1a hash.
func textID(who speaker, text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte{byte(who)})
	io.WriteString(h, text)
	return max(1, h.Sum64())
}

func (d *shareGPT) warnings() []warn.Warning {
	file := d.values.Source().Name
	w := []warn.Warning{estimated(file, d.count.tokenizer)}
	if d.empty > 0 {
		w = append(w, warn.New(warn.RowsLeft,
			"%s left out without a question and its answer: %s, the first conversations at line %d",
			rows.Plural(d.empty, "conversation"), file, d.firstEmpty).About("conversations"))
	}
	return append(w, d.dropped.warning(file)...)
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
