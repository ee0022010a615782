package traces

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// mooncakeBlock is the tokens of one of hash_ids.
const mooncakeBlock = 512

// mooncake decodes the Mooncake traces (github.com/kvcache-ai/Mooncake; Qin et al., FAST 2025):
// timestamp in milliseconds, input_length, output_length. hash_ids, which a line may lack, name
// the prompt's blocks of 512 tokens, the last one shorter: an id stands for its block and all
// before it, so that it follows the same one wherever it stands. Outputs have no names: what a
// later prompt has of them, its own ids say.
type mooncake struct {
	before []int64 // by id, the one before it + 2; 0 of those that no prompt has had
}

// noID is before the first id of a prompt.
const noID = -1

// mostIDs bounds the memory of before: what larger ids follow is not checked.
const mostIDs = 1 << 20

var mooncakeKeys = []string{"timestamp", "input_length", "output_length", "hash_ids"}

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
	}
	if err := rows.Decode(raw, &v); err != nil {
		return row{}, err
	}
	r.stamp = string(v.Timestamp)
	if r.at, err = rows.Time("timestamp", r.stamp, des.Millisecond); err != nil {
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

// content makes pieces of the ids of a prompt.
func (d *mooncake) content(ids []int64, prompt int) (*prefix.Content, error) {
	fault := func(value, format string, args ...any) (*prefix.Content, error) {
		return nil, rows.Wrong("hash_ids", value, fmt.Sprintf(format, args...))
	}
	if want := (prompt + mooncakeBlock - 1) / mooncakeBlock; len(ids) != want {
		return fault(fmt.Sprint(ids), "%s, but input_length = %d is %s of %d tokens, the last one "+
			"maybe shorter", rows.Plural(len(ids), "id"), prompt, rows.Plural(want, "block"), mooncakeBlock)
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
		c.Prompt[i] = prefix.Piece{ID: uint64(id) + 1, Tokens: mooncakeBlock}
	}
	c.Prompt[len(ids)-1].Tokens = prompt - (len(ids)-1)*mooncakeBlock
	return c, nil
}

// follows returns what an id followed first, which follows last now.
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

// placeAfter says where an id stands in a prompt.
func placeAfter(id int64) string {
	if id == noID {
		return "first"
	}
	return fmt.Sprint("after ", id)
}
