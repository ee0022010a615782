package traces

import (
	"cmp"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// dynamo decodes request traces of Dynamo (ai-dynamo/dynamo, lib/llm/src/request_trace/types.rs):
// records of schema dynamo.request.trace.v1, bare or as the event of a line. A request has its
// blocks' hashes, of which each stands for its block and all before it. Calls of tools are no
// requests; they are part of the time until the next one.
type dynamo struct {
	block int               // tokens of a block, of all requests
	ids   map[uint64]uint64 // by hash
}

func newDynamo(*options, []byte) decoder { return &dynamo{ids: map[uint64]uint64{}} }

func (*dynamo) timeKey() string   { return "request_received_ms" }
func (*dynamo) tokens() Tokenizer { return "" }

func (*dynamo) keys() []string {
	return []string{"timestamp", "event", "schema", "event_type", "event_time_unix_ms",
		"event_source", "agent_context", "request", "tool"}
}

// dynamoRecord is a record; its type is request_end, or of a tool.
type dynamoRecord struct {
	Type    string `json:"event_type"`
	Context struct {
		Session string `json:"session_id"`
	} `json:"agent_context"`
	Request *struct {
		Received rows.Numeral `json:"request_received_ms"`
		Took     rows.Numeral `json:"total_time_ms"`
		Input    rows.Numeral `json:"input_tokens"`
		Output   rows.Numeral `json:"output_tokens"`
		Replay   *struct {
			Block  int          `json:"trace_block_size"`
			Input  rows.Numeral `json:"input_length"`
			Hashes []uint64     `json:"input_sequence_hashes"`
		} `json:"replay"`
	} `json:"request"`
}

func (d *dynamo) decode(raw []byte) ([]row, error) {
	var v struct {
		Event *dynamoRecord `json:"event"`
		dynamoRecord
	}
	if err := rows.Decode(raw, &v); err != nil {
		return nil, err
	}
	if v.Event != nil {
		v.dynamoRecord = *v.Event
	}
	q := v.Request
	if v.Type != "request_end" || q == nil {
		return nil, nil
	}
	r := row{session: v.Context.Session, stamp: string(q.Received)}
	var err error
	if r.at, err = rows.Time("request_received_ms", r.stamp, des.Millisecond); err != nil {
		return nil, err
	}
	if r.took, err = delayed("total_time_ms", q.Took); err != nil {
		return nil, err
	}
	input := q.Input
	if q.Replay != nil {
		input = cmp.Or(input, q.Replay.Input)
	}
	if r.prompt, err = rows.Tokens("input_tokens", string(cmp.Or(input, "0")), 0); err != nil {
		return nil, err
	}
	if r.output, err = rows.Tokens("output_tokens", string(cmp.Or(q.Output, "0")), 0); err != nil {
		return nil, err
	}
	if r.prompt == 0 || r.output == 0 {
		r.skip = failed
	} else if q.Replay != nil {
		r.content, err = d.content(q.Replay.Block, q.Replay.Hashes, r.prompt)
	}
	return []row{r}, err
}

// content makes a piece of each hash; the last block may be shorter, or have no hash.
func (d *dynamo) content(block int, hashes []uint64, prompt int) (*prefix.Content, error) {
	switch {
	case block < 1 || block > mostBlock:
		return nil, rows.Wrong("trace_block_size", fmt.Sprint(block), fmt.Sprintf("want 1 to %d tokens",
			mostBlock))
	case d.block > 0 && block != d.block:
		return nil, rows.Wrong("trace_block_size", fmt.Sprint(block), fmt.Sprintf("was %d above; the "+
			"blocks of a trace have one size, because hashes of others are never equal", d.block))
	case len(hashes) != prompt/block && len(hashes) != (prompt+block-1)/block:
		return nil, rows.Wrong("input_sequence_hashes", fmt.Sprint(len(hashes)), fmt.Sprintf("a prompt "+
			"of %s has %s of %d", rows.Plural(prompt, "token"),
			rows.Plural((prompt+block-1)/block, "block"), block))
	}
	d.block = block
	c := &prefix.Content{}
	for i, hash := range hashes {
		if d.ids[hash] == 0 {
			d.ids[hash] = uint64(len(d.ids)) + 1
		}
		c.Prompt = append(c.Prompt, prefix.Piece{ID: d.ids[hash], Tokens: min(block, prompt-i*block)})
	}
	return c, nil
}
