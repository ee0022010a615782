package traces

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/prefix"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// multiTurn decodes AIPerf's conversations (ai-dynamo/aiperf, src/aiperf/dataset/loader/models.py:
// MultiTurn). A turn's prompt is the conversation so far and its own texts. Delays and times are in
// milliseconds.
type multiTurn struct {
	count tokenCounter
	timed bool
	n     int
}

type multiTurnTurn struct {
	Text   string          `json:"text"`
	Texts  []any           `json:"texts"`
	Role   string          `json:"role"`
	Image  json.RawMessage `json:"image"`
	Images json.RawMessage `json:"images"`
	Delay  rows.Numeral    `json:"delay"`
	At     rows.Numeral    `json:"timestamp"`
	Output rows.Numeral    `json:"output_length"`
}

func newMultiTurn(o *options, first []byte) decoder {
	return &multiTurn{count: newTokenCounter(o.tokenizer),
		timed: bytes.Contains(first, []byte(`"timestamp"`))}
}

func (d *multiTurn) timeKey() string {
	if !d.timed {
		return ""
	}
	return "timestamp"
}

func (*multiTurn) keys() []string      { return []string{"session_id", "turns", "type"} }
func (d *multiTurn) tokens() Tokenizer { return d.count.tokenizer }

func (d *multiTurn) decode(raw []byte) (all []row, err error) {
	var v struct {
		Session string          `json:"session_id"`
		Turns   []multiTurnTurn `json:"turns"`
	}
	if err := rows.Decode(raw, &v); err != nil {
		return nil, err
	}
	if d.n++; v.Session == "" {
		v.Session = fmt.Sprintf("c%d", d.n)
	}
	var system []prefix.Piece
	for i, t := range v.Turns {
		r := row{session: v.Session, stamp: string(t.At), later: t.At == "" && len(all) > 0,
			image: len(t.Image)+len(t.Images) > 0}
		for _, text := range append([]any{t.Text}, t.Texts...) {
			said, ok := text.(string)
			if !ok {
				said = fmt.Sprint(text)
			}
			if n := d.count.tokens(said); n > 0 && n <= rows.MaxTokens {
				r.asked = append(r.asked, prefix.Piece{ID: textID(user, said), Tokens: n})
			}
		}
		if t.Role == "system" && len(all) == 0 && t.Output == "" {
			system = append(system, r.asked...)
			continue
		}
		if r.asked = append(system, r.asked...); r.asked == nil {
			return nil, rows.Wrong("turns", fmt.Sprint(i+1), "this turn has no text")
		}
		system = nil
		if t.Output == "" {
			return nil, rows.Wrong("output_length", "", fmt.Sprintf("missing of turn %d; AIPerf then takes "+
				"--osl of its command line: write it into each turn", i+1))
		}
		if r.output, err = rows.Tokens("output_length", string(t.Output), 1); err != nil {
			return nil, err
		}
		if r.pause, err = delayed("delay", t.Delay); err != nil {
			return nil, err
		}
		if d.timed && !r.later {
			if r.at, err = rows.Time("timestamp", r.stamp, des.Millisecond); err != nil {
				return nil, err
			}
		}
		all = append(all, r)
	}
	return all, nil
}

// custom decodes vLLM's custom dataset (vllm/benchmarks/datasets: CustomDataset). Equal prompts are
// equal content.
type custom struct{ count tokenCounter }

func newCustom(o *options, _ []byte) decoder { return &custom{newTokenCounter(o.tokenizer)} }

func (*custom) timeKey() string     { return "" }
func (*custom) keys() []string      { return []string{"prompt", "output_tokens"} }
func (d *custom) tokens() Tokenizer { return d.count.tokenizer }

func (d *custom) decode(raw []byte) ([]row, error) {
	var v struct {
		Prompt string       `json:"prompt"`
		Output rows.Numeral `json:"output_tokens"`
	}
	if err := rows.Decode(raw, &v); err != nil {
		return nil, err
	}
	r := row{prompt: d.count.tokens(v.Prompt)}
	var err error
	if r.output, err = rows.Tokens("output_tokens", string(v.Output), 1); err != nil {
		return nil, err
	}
	if r.prompt == 0 || r.prompt > rows.MaxTokens {
		return nil, rows.Wrong("prompt", rows.Short(v.Prompt), "an empty or too long text")
	}
	r.content = &prefix.Content{Prompt: []prefix.Piece{{ID: textID(user, v.Prompt), Tokens: r.prompt}}}
	return []row{r}, nil
}
