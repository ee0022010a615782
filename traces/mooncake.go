package traces

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// mooncake decodes traces of Mooncake (github.com/kvcache-ai/Mooncake; Qin et al., FAST 2025) and
// Qwen-Bailian (github.com/alibaba-edu/qwen-bailian-usagetraces-anon), and traces in this shape of
// AIPerf (ai-dynamo/aiperf, src/aiperf/dataset/loader/models.py) and Dynamo (ai-dynamo/dynamo,
// lib/data-gen/src/mooncake.rs). Times and delays are in milliseconds. Rows of Qwen-Bailian have a
// chat_id and times in seconds. A file has no times if its first row has none. Rows of one
// session_id follow one another. input_length is the whole prompt. The optional hash_ids identify
// the prompt's blocks; the last block may be shorter. An id stands for its block and all blocks
// before it, so it has the same predecessor in every prompt. Outputs have no ids; if a later prompt
// contains an output, the prompt's own ids cover it.
type mooncake struct {
	timed  bool
	block  int              // tokens per id, from the first prompt of several blocks; 0: none yet
	before []int64          // by id: predecessor + 2; 0 for an id not seen yet
	roots  map[int64]string // of Qwen-Bailian's chats: the conversation
}

// Tokens per block in published traces: 512 of Mooncake, 16 of Qwen-Bailian, 64 of Dynamo.
const leastBlock, mostBlock = 8, 4096

// noID is the predecessor of a prompt's first id.
const noID = -1

// mostIDs bounds the memory of before; predecessors of larger ids are not checked.
const mostIDs = 1 << 20

var mooncakeKeys = []string{"timestamp", "created_time", "input_length", "input_tokens",
	"output_length", "output_tokens", "hash_ids", "chat_id", "parent_chat_id", "turn", "type",
	"session_id", "delay", "delay_ms", "tool_wait_ms", "request_id"}

func newMooncake(_ *options, first []byte) decoder {
	keys := rows.Keys(first)
	return &mooncake{roots: map[int64]string{}, timed: slices.Contains(keys, "timestamp") ||
		slices.Contains(keys, "created_time")}
}

func (d *mooncake) timeKey() string {
	if !d.timed {
		return ""
	}
	return "timestamp"
}

func (*mooncake) keys() []string    { return mooncakeKeys }
func (*mooncake) tokens() Tokenizer { return "" }

func (d *mooncake) decode(raw []byte) ([]row, error) {
	r, err := d.row(raw)
	return []row{r}, err
}

func (d *mooncake) row(raw []byte) (r row, err error) {
	var v struct {
		Timestamp rows.Numeral `json:"timestamp"`
		Created   rows.Numeral `json:"created_time"`
		Input     rows.Numeral `json:"input_length"`
		Tokens    rows.Numeral `json:"input_tokens"`
		Output    rows.Numeral `json:"output_length"`
		Answer    rows.Numeral `json:"output_tokens"`
		HashIDs   []int64      `json:"hash_ids"`
		Chat      *int64       `json:"chat_id"`
		Parent    int64        `json:"parent_chat_id"`
		Type      string       `json:"type"`
		Session   string       `json:"session_id"`
		Delay     rows.Numeral `json:"delay"`
		DelayMS   rows.Numeral `json:"delay_ms"`
		ToolWait  rows.Numeral `json:"tool_wait_ms"`
	}
	if err := rows.Decode(raw, &v); err != nil {
		return row{}, err
	}
	unit := des.Millisecond
	if v.Chat != nil {
		unit, r.session = des.Second, d.conversation(*v.Chat, v.Parent)
	}
	if v.Session != "" {
		r.session = v.Session
		r.later = v.Delay+v.DelayMS+v.ToolWait != ""
		if r.pause, err = delayed("delay", v.Delay, v.DelayMS, v.ToolWait); err != nil {
			return row{}, err
		}
	}
	r.image = v.Type == "image"
	if r.stamp = string(cmp.Or(v.Timestamp, v.Created)); d.timed && (r.stamp != "" || !r.later) {
		if r.at, err = rows.Time("timestamp", r.stamp, unit); err != nil {
			return row{}, err
		}
	}
	prompt := cmp.Or(v.Input, v.Tokens)
	if r.prompt, err = rows.Tokens("input_length", string(prompt), 1); err != nil {
		return row{}, err
	}
	output := cmp.Or(v.Output, v.Answer)
	if r.output, err = rows.Tokens("output_length", string(output), 1); err != nil {
		return row{}, err
	}
	if v.HashIDs != nil {
		r.content, err = d.content(v.HashIDs, r.prompt)
	}
	return r, err
}

// conversation returns the name of the conversation of a chat that continues parent; a parent that
// was not read begins one.
func (d *mooncake) conversation(chat, parent int64) string {
	name := d.roots[parent]
	if parent < 0 || name == "" {
		name = fmt.Sprint("chat", chat)
	}
	d.roots[chat] = name
	return name
}

// content makes one piece per id of a prompt.
func (d *mooncake) content(ids []int64, prompt int) (*prefix.Content, error) {
	fault := func(value, format string, args ...any) (*prefix.Content, error) {
		return nil, rows.Wrong("hash_ids", value, fmt.Sprintf(format, args...))
	}
	if d.block == 0 && len(ids) > 1 {
		d.block = blockOf(len(ids), prompt)
	}
	block := d.block
	if block == 0 { // of one id alone, a block as long as the prompt has the same hits
		block = min(prompt, mostBlock)
	}
	if want := (prompt + block - 1) / max(1, block); len(ids) != want {
		return fault(fmt.Sprint(ids), "%s, but input_length = %d is %s of %d tokens, the size by the "+
			"first prompt of several blocks; the last one may be shorter", rows.Plural(len(ids), "id"),
			prompt, rows.Plural(want, "block"), block)
	}
	last := int64(noID)
	for _, id := range ids {
		if id < 0 {
			return fault(fmt.Sprint(id), "negative; ids count from 0")
		}
		if was := d.follows(id, last); was != last {
			return fault(fmt.Sprint(id), "%s here and %s above; an id stands for its block and all before "+
				"it", placeAfter(last), placeAfter(was))
		}
		last = id
	}
	c := &prefix.Content{Prompt: make([]prefix.Piece, len(ids))}
	for i, id := range ids {
		c.Prompt[i] = prefix.Piece{ID: uint64(id) + 1, Tokens: block}
	}
	c.Prompt[len(ids)-1].Tokens = prompt - (len(ids)-1)*block
	return c, nil
}

// blockOf returns the power of two of tokens per block with which a prompt has n blocks, n above 1.
// It is 512, Mooncake's, if there is none.
func blockOf(n, prompt int) int {
	for block := leastBlock; block <= mostBlock; block *= 2 {
		if (prompt+block-1)/block == n {
			return block
		}
	}
	return 512
}

// follows returns the first predecessor of an id that follows last now.
func (d *mooncake) follows(id, last int64) (first int64) {
	if id >= mostIDs {
		return last
	}
	for int64(len(d.before)) <= id {
		d.before = append(d.before, 0)
	}
	if d.before[id] == 0 {
		d.before[id] = last + 2
	}
	return d.before[id] - 2
}

// placeAfter describes an id's position in a prompt.
func placeAfter(id int64) string {
	if id == noID {
		return "first"
	}
	return fmt.Sprint("after ", id)
}
