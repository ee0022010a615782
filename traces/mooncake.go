package traces

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// mooncakeBlock is the tokens per element of hash_ids.
const mooncakeBlock = 512

// mooncake decodes the Mooncake traces (github.com/kvcache-ai/Mooncake; Qin et al., FAST 2025):
// timestamp in milliseconds, input_length, output_length. The optional hash_ids identify the
// prompt's blocks of 512 tokens; the last block may be shorter. An id stands for its block and all
// blocks before it, so it has the same predecessor in every prompt. Outputs have no ids; if a later
// prompt contains an output, the prompt's own ids cover it.
type mooncake struct {
	before []int64 // by id: predecessor + 2; 0 for an id not seen yet
}

// noID is the predecessor of a prompt's first id.
const noID = -1

// mostIDs bounds the memory of before; predecessors of larger ids are not checked.
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

// content makes one piece per id of a prompt.
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
