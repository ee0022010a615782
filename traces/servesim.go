package traces

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// serveSim decodes the workloads of LLMServingSim (casys-kaist/LLMServingSim, workloads/README.md):
// requests, or sessions of requests with the time of a tool after each. Equal token ids are equal
// content.
type serveSim struct{ timed, sessions bool }

type serveSimRequest struct {
	Input  rows.Numeral `json:"input_toks"`
	Output rows.Numeral `json:"output_toks"`
	IDs    []int64      `json:"input_tok_ids"`
	Tool   rows.Numeral `json:"tool_duration_ns"`
}

func newServeSim(_ *options, first []byte) decoder {
	keys := rows.Keys(first)
	return &serveSim{slices.Contains(keys, "arrival_time_ns"), slices.Contains(keys, "sub_requests")}
}

func (d *serveSim) timeKey() string {
	if !d.timed {
		return ""
	}
	return "arrival_time_ns"
}

func (*serveSim) tokens() Tokenizer { return "" }

func (*serveSim) keys() []string {
	return []string{"input_toks", "output_toks", "arrival_time_ns", "input_tok_ids", "output_tok_ids",
		"sub_requests", "session_id"}
}

func (d *serveSim) decode(raw []byte) (all []row, err error) {
	var v struct {
		Arrival rows.Numeral      `json:"arrival_time_ns"`
		Session string            `json:"session_id"`
		Sub     []serveSimRequest `json:"sub_requests"`
		serveSimRequest
	}
	if err := rows.Decode(raw, &v); err != nil {
		return nil, err
	}
	if v.Sub == nil {
		v.Sub = []serveSimRequest{v.serveSimRequest}
	} else if !d.sessions {
		return nil, rows.Wrong("sub_requests", fmt.Sprint(len(v.Sub)), "a session in a file that begins "+
			"with a single request: put sessions first")
	}
	first := row{session: v.Session, stamp: string(v.Arrival)}
	if d.timed {
		if first.at, err = rows.Time("arrival_time_ns", first.stamp, 1); err != nil {
			return nil, err
		}
	}
	tool := des.Time(0)
	for i, q := range v.Sub {
		r := row{session: v.Session, later: true, pause: tool}
		if i == 0 {
			r = first
		}
		if r.prompt, err = rows.Tokens("input_toks", string(q.Input), 1); err != nil {
			return nil, err
		}
		if r.output, err = rows.Tokens("output_toks", string(q.Output), 1); err != nil {
			return nil, err
		}
		if r.content = tokenContent(q.IDs, r.prompt); q.Tool != "" {
			if tool, err = rows.Time("tool_duration_ns", string(q.Tool), 1); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// tokenContent makes pieces of tokens that share their id with equal tokens; nil without ids.
func tokenContent(ids []int64, prompt int) *prefix.Content {
	if len(ids) == 0 {
		return nil
	}
	c := &prefix.Content{}
	for chunk := range slices.Chunk(ids[:min(len(ids), prompt)], leastBlock) {
		h := fnv.New64a()
		for _, id := range chunk {
			h.Write(binary.LittleEndian.AppendUint64(nil, uint64(id)))
		}
		c.Prompt = append(c.Prompt, prefix.Piece{ID: max(1, h.Sum64()), Tokens: len(chunk)})
	}
	return c
}
