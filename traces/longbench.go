package traces

import (
	"slices"

	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/traces/rows"
)

// readLongBench reads the lengths of LongBench's records. The prompt tokens are the record's
// length, in words or Chinese characters, multiplied by the set's ratio in the built-in table. The
// benchmark limits the output per set. The output of a base model is this limit; outputs of chat
// models, which stop earlier, are drawn from the table.
func readLongBench(o *options) func(rows.Record, *row) error {
	table := loadTable()
	return func(rec rows.Record, r *row) error {
		if r.Set == "" {
			return rows.Wrong("dataset", "", "missing; every LongBench record names its set")
		}
		s := findSet(table, canonicalSet(r.Set))
		if s == nil {
			problem := "not a set of LongBench"
			if n := nearest.Name(r.Set, setNames(table)); n != "" {
				problem += "; did you mean " + n + "?"
			}
			return rows.Wrong("dataset", r.Set, problem)
		}
		text := rec.Text("length")
		length, err := rows.Tokens("length", text, 1)
		if err != nil {
			return err
		}
		r.Prompt, r.Output, r.Set = s.tokens(o.tokenizer, length), s.maxNewTokens, s.name
		if r.Prompt > rows.MaxTokens {
			return rows.Wrong("length", text, "too long")
		}
		if o.sets != nil && !slices.Contains(o.sets, s.name) {
			r.skip = excluded
		} else if o.Output != OutputBase {
			c := s.output(o.Output)
			r.Output = int(c.stepped(o.lengths.Float64()))
		}
		return nil
	}
}
