package traces

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// mooncake decodes the Mooncake traces (github.com/kvcache-ai/Mooncake; Qin et al., FAST 2025) and
// the Qwen-Bailian traces (github.com/alibaba-edu/qwen-bailian-usagetraces-anon): timestamp,
// input_length, output_length. Times are in milliseconds; Qwen-Bailian rows, which have a chat_id,
// have them in seconds. The optional hash_ids identify the prompt's blocks; the last block may be
// shorter. An id stands for its block and all blocks before it, so it has the same predecessor in
// every prompt. Outputs have no ids; if a later prompt contains an output, the prompt's own ids
// cover it.
type mooncake struct {
	block  int     // tokens per id, from the first prompt of several blocks; 0: none yet
	before []int64 // by id: predecessor + 2; 0 for an id not seen yet
}

// Tokens per block in published traces: 512 of Mooncake, 16 of Qwen-Bailian, 64 of Dynamo.
const leastBlock, mostBlock = 8, 4096

// noID is the predecessor of a prompt's first id.
const noID = -1

// mostIDs bounds the memory of before; predecessors of larger ids are not checked.
const mostIDs = 1 << 20

var mooncakeKeys = []string{"timestamp", "input_length", "output_length", "hash_ids", "chat_id",
	"parent_chat_id", "turn", "type"}

func newMooncake(*options) decoder { return &mooncake{} }

func (*mooncake) timeKey() string   { return "timestamp" }
func (*mooncake) keys() []string    { return mooncakeKeys }
func (*mooncake) tokens() Tokenizer { return "" }

func (d *mooncake) decode(raw []byte) (r row, err error) {
	var v struct {
		Timestamp rows.Numeral `json:"timestamp"`
		Input     rows.Numeral `json:"input_length"`
		Output    rows.Numeral `json:"output_length"`
		HashIDs   []int64      `json:"hash_ids"`
		Chat      *int64       `json:"chat_id"`
		Type      string       `json:"type"`
	}
	if err := rows.Decode(raw, &v); err != nil {
		return row{}, err
	}
	unit := des.Millisecond
	if v.Chat != nil {
		unit = des.Second
	}
	r.image = v.Type == "image"
	r.stamp = string(v.Timestamp)
	if r.at, err = rows.Time("timestamp", r.stamp, unit); err != nil {
		return row{}, err
	}
	if r.prompt, err = rows.Tokens("input_length", string(v.Input), 1); err != nil {
		return row{}, err
	}
	if r.output, err = rows.Tokens("output_length", string(v.Output), 1); err != nil {
		return row{}, err
	}
	if v.HashIDs != nil {
		r.content, err = d.content(v.HashIDs, r.prompt)
	}
	return r, err
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
