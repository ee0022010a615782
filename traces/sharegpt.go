package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim/prefix"
)

// shareGPT reads conversations as JSON, arrays of them or one after another, in one of two styles,
// the second that of vLLM's benchmark of multi-turn chats:
//
//	{"conversations": [{"from": "human", "value": "…"}, {"from": "gpt", "value": "…"}, …]}
//	{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}, …]}
//
// Each answer to a user is a turn: its prompt are all messages before it. Equal texts are equal
// content. Messages without text are read over; what is not answered, and an answer to nobody, are
// part of later prompts. Nothing is added for a chat template.
type shareGPT struct {
	file  string
	dec   *json.Decoder
	text  *counted
	array bool // within one
	close func() error
	count tokenCounter
	seed  uint64

	n, empty   int // conversations, and those without a turn
	firstEmpty int // its line
	dropped    droppedKeys
}

// conversationKeys are those of a conversation, and messageKeys of its messages.
var (
	conversationKeys = []string{"conversations", "messages", "id"}
	messageKeys      = []string{"from", "value", "role", "content"}
)

// message is one of either style: a role and a text.
type message struct {
	From    *string `json:"from"`
	Value   *string `json:"value"`
	Role    *string `json:"role"`
	Content *string `json:"content"`
}

// speaker says whose a message is.
type speaker int

const (
	nobody speaker = iota
	user
	model
	system // and tools
)

var speakers = map[string]speaker{
	"human": user, "user": user, "gpt": model, "assistant": model, "chatgpt": model, "bing": model,
	"bard": model, "model": model, "system": system, "tool": system, "function": system,
}

// newShareGPT reads conversations from a file whose first line is of the given number.
func newShareGPT(file string, from io.Reader, line int, o *options) *shareGPT {
	text := &counted{file: file, r: from, before: line}
	return &shareGPT{file: file, dec: json.NewDecoder(text), text: text,
		count: newTokenCounter(o.tokenizer), seed: o.seed}
}

func (d *shareGPT) talk() (*talk, error) {
	for {
		turns, line, err := d.read()
		switch {
		case err == io.EOF && d.n == 0:
			return nil, &LineError{File: d.file, Problem: "no conversations in it"}
		case err == io.EOF && d.n == d.empty:
			return nil, &LineError{File: d.file, Line: d.firstEmpty, Key: "conversations",
				Problem: "no question and its answer, nor in any other"}
		case err != nil:
			return nil, err
		}
		if d.n++; len(turns) > 0 {
			return given(fmt.Sprintf("c%d", d.n), turns, thinkRand(d.seed, d.n)), nil
		}
		if d.empty++; d.empty == 1 {
			d.firstEmpty = line
		}
	}
}

// read returns the turns of the next conversation and the line on which it begins.
func (d *shareGPT) read() (turns []turn, line int, err error) {
	if err := d.brackets(); err != nil {
		return nil, 0, d.fault(d.dec.InputOffset(), err)
	}
	var raw json.RawMessage
	if err := d.dec.Decode(&raw); err == io.EOF && !d.array {
		return nil, 0, io.EOF
	} else if err != nil {
		return nil, 0, d.fault(d.dec.InputOffset(), d.placed(err))
	}
	start := d.dec.InputOffset() - int64(len(raw))
	d.text.drop(start)
	var v struct {
		Conversations *[]message `json:"conversations"`
		Messages      *[]message `json:"messages"`
	}
	if err := decodeJSON(raw, &v); err != nil {
		at := start
		var wrong *json.UnmarshalTypeError
		if errors.As(json.Unmarshal(raw, &v), &wrong) {
			at += wrong.Offset
		}
		return nil, 0, d.fault(at, err)
	}
	key, messages := "conversations", v.Conversations
	if messages == nil {
		messages = v.Messages
	}
	if messages == nil {
		err = &valueError{key, "", "missing; a conversation is a list of messages of that name, or " +
			"messages"}
	} else if turns, err = d.turns(*messages); err == nil {
		d.drop(raw)
		return turns, d.text.line(start), nil
	}
	return nil, 0, d.fault(start, err)
}

// drop keeps which keys of the first conversation and its messages are not read.
func (d *shareGPT) drop(raw []byte) {
	if d.dropped.seen {
		return
	}
	d.dropped.of(raw, conversationKeys)
	for _, m := range rawMessages(raw) {
		d.dropped.add(m, messageKeys)
	}
}

// rawMessages are the messages of a conversation as they are written.
func rawMessages(raw []byte) []json.RawMessage {
	var v struct{ Conversations, Messages []json.RawMessage }
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	if v.Conversations != nil {
		return v.Conversations
	}
	return v.Messages
}

// brackets reads beginnings and ends of arrays, up to a conversation, the end or what is neither.
func (d *shareGPT) brackets() error {
	for {
		more := d.dec.More() // and skips white space
		var next [1]byte
		d.dec.Buffered().Read(next[:])
		if ends := d.array && !more; !ends && (d.array || next[0] != '[') {
			return nil
		}
		if _, err := d.dec.Token(); err != nil {
			return err
		}
		d.array = !d.array
	}
}

// placed corrects where a value is faulty: the decoder counts no brackets and commas, nor white
// space before them.
func (d *shareGPT) placed(err error) error {
	var again *json.SyntaxError
	var raw json.RawMessage
	if errors.As(json.NewDecoder(d.dec.Buffered()).Decode(&raw), &again) {
		again.Offset += d.dec.InputOffset() - 1
		return again
	}
	return err
}

// turns makes turns of messages.
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
			return nil, &valueError{"from", "", fmt.Sprintf("missing of message %d; whose is it?", i+1)}
		case speakers[*who] == nobody:
			return nil, &valueError{key, *who, fmt.Sprintf("of message %d: whose is it? use human, gpt or "+
				"system, or user, assistant or tool", i+1)}
		case said == nil:
			continue
		}
		tokens, id := d.count.tokens(*said), textID(speakers[*who], *said)
		switch {
		case tokens == 0:
			continue
		case tokens > maxTokens:
			return nil, &valueError{key, *who, "too long a text"}
		}
		if speakers[*who] != model || !question {
			asked = append(asked, prefix.Piece{ID: id, Tokens: tokens})
			question = question || speakers[*who] == user
			continue
		}
		turns = append(turns, turn{asked, tokens, id})
		asked, question = nil, false
	}
	return turns, nil
}

// textID names a text by its hash, FNV-1a.
func textID(who speaker, text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte{byte(who)})
	io.WriteString(h, text)
	return max(1, h.Sum64())
}

// fault says where an error is.
func (d *shareGPT) fault(at int64, err error) error {
	var there *LineError
	if errors.As(err, &there) {
		return there
	}
	e := &LineError{File: d.file, Line: d.text.line(at)}
	var v *valueError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &v):
		e.Key, e.Value, e.Problem = v.key, v.value, v.problem
	case errors.As(err, &syntax):
		e.Line, e.Problem = d.text.line(syntax.Offset), "not valid JSON: "+files.JSONWords(err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Line = d.text.line(d.text.read)
		e.Problem = "ends within a conversation: the file seems cut short"
	default:
		return fmt.Errorf("%s:%d: %w", d.file, e.Line, err)
	}
	return e
}

func (d *shareGPT) warnings() []warn.Warning {
	w := []warn.Warning{estimated(d.file, d.count.tokenizer)}
	if d.empty > 0 {
		w = append(w, warn.New(warn.RowsLeft,
			"%s left out without a question and its answer: %s, the first "+
				"conversations at line %d", plural(d.empty, "conversation"), d.file, d.firstEmpty).About(
			"conversations"))
	}
	return append(w, d.dropped.warning(d.file)...)
}

// rest counts the turns that are left, up to a conversation that cannot be read.
func (d *shareGPT) rest() (n int, err error) {
	for {
		turns, _, err := d.read()
		if err == io.EOF {
			return n, nil
		} else if err != nil {
			return n, err
		}
		n += len(turns)
	}
}

func (d *shareGPT) Close() error {
	if d.close == nil {
		return nil
	}
	f := d.close
	d.close = nil
	return f()
}

// counted is text of which it is known where its lines end.
type counted struct {
	file   string
	r      io.Reader
	before int // lines that end before those of ends, and before the text
	ends   []int64
	read   int64
	from   int64 // of the value that is read
}

func (c *counted) Read(p []byte) (int, error) {
	if c.read-c.from > MaxLine {
		return 0, &LineError{File: c.file, Line: c.line(c.from), Problem: fmt.Sprintf("a conversation "+
			"is longer than %d bytes; is this a list of conversations?", MaxLine)}
	}
	n, err := c.r.Read(p)
	for i, b := range p[:n] {
		if b == '\n' {
			c.ends = append(c.ends, c.read+int64(i))
		}
	}
	c.read += int64(n)
	return n, err
}

// line returns the line of a place, from 1.
func (c *counted) line(at int64) int {
	i, _ := slices.BinarySearch(c.ends, at)
	return c.before + i + 1
}

// drop forgets the lines before a place, where a value begins.
func (c *counted) drop(at int64) {
	i, _ := slices.BinarySearch(c.ends, at)
	c.ends = slices.Delete(c.ends, 0, i)
	c.before, c.from = c.before+i, at
}
