package traces

import (
	"math/rand/v2"
	"slices"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// longBench decodes LongBench's JSONL files (github.com/THUDM/LongBench; Bai et al., ACL 2024). The
// prompt tokens are the record's length, in words or Chinese characters, multiplied by the set's
// ratio in the built-in table. The benchmark limits the output per set. The output of a base model
// is this limit; outputs of chat models, which stop earlier, are drawn from the table.
type longBench struct {
	tokenizer Tokenizer
	table     []set
	wanted    []string // sets; nil: all
	output    string   // base | chat | instruct
	rng       *rand.Rand
}

// longBenchKeys are the keys of every record: the two that are read, and the texts.
var longBenchKeys = []string{"length", "dataset", "input", "context", "answers", "language",
	"all_classes", "_id"}

func newLongBench(o *options, _ []byte) decoder {
	return &longBench{tokenizer: o.tokenizer, table: loadTable(), wanted: o.datasets, output: o.output,
		rng: o.lengths}
}

func (*longBench) timeKey() string     { return "" }
func (*longBench) keys() []string      { return longBenchKeys }
func (d *longBench) tokens() Tokenizer { return d.tokenizer }

func (d *longBench) decode(raw []byte) ([]row, error) {
	r, err := d.row(raw)
	return []row{r}, err
}

func (d *longBench) row(raw []byte) (row, error) {
	var v struct {
		Length  rows.Numeral `json:"length"`
		Dataset *string      `json:"dataset"`
	}
	if err := rows.Decode(raw, &v); err != nil {
		return row{}, err
	}
	if v.Dataset == nil {
		return row{}, rows.Wrong("dataset", "", "missing; every LongBench record names its set")
	}
	s := findSet(d.table, canonicalSet(*v.Dataset))
	if s == nil {
		problem := "not a set of LongBench"
		if n := nearest.Name(*v.Dataset, setNames(d.table)); n != "" {
			problem += "; did you mean " + n + "?"
		}
		return row{}, rows.Wrong("dataset", *v.Dataset, problem)
	}
	length, err := rows.Tokens("length", string(v.Length), 1)
	if err != nil {
		return row{}, err
	}
	r := row{prompt: s.tokens(d.tokenizer, length), output: s.maxNewTokens, set: s.name}
	if r.prompt > rows.MaxTokens {
		return row{}, rows.Wrong("length", string(v.Length), "too long")
	}
	if d.wanted != nil && !slices.Contains(d.wanted, s.name) {
		r.skip = excluded
	} else if d.output != OutputBase {
		c := s.output(d.output)
		r.output = int(c.stepped(d.rng.Float64()))
	}
	return r, nil
}
