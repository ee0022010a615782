package traces

import (
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// mix draws lengths from the built-in table. A request draws its set in proportion to the set's
// requests, because the paper combines all requests of all sets into one trace. It then draws
// prompt and output from the set's inverse CDFs.
//
// The two draws within a set are independent. In LongBench the task, and so the set, couples prompt
// and output lengths. Within a set, an output ends at the task's limit or with an answer whose
// length does not depend on the document.
type mix struct {
	generated
	rng       *rand.Rand
	sets      []*set
	tokenizer Tokenizer
	output    string // model that generated the outputs
	total     int    // requests of all sets
}

func newMix(names []string, t Tokenizer, output string, seed uint64) *mix {
	m := &mix{rng: des.Rand(seed, "traces.lengths"), tokenizer: t, output: output}
	for _, name := range names {
		s := findSet(loadTable(), name)
		m.sets = append(m.sets, s)
		m.total += s.requests
	}
	return m
}

func (m *mix) next() (sim.Arrival, error) {
	i := 0
	for k := m.rng.IntN(m.total) - m.sets[0].requests; k >= 0; k -= m.sets[i].requests {
		i++
	}
	s := m.sets[i]
	prompt, output := s.prompt(m.tokenizer), s.output(m.output)
	return sim.Arrival{
		Prompt: int(prompt.interpolated(m.rng.Float64()) + 0.5),
		Output: int(output.stepped(m.rng.Float64())),
		Set:    s.name,
	}, nil
}

func (m *mix) texts() bool { return true }

// generated is embedded in sources without a file. They have no end.
type generated struct{}

func (generated) timed() bool              { return false }
func (generated) texts() bool              { return false }
func (generated) warnings() []warn.Warning { return nil }
func (generated) rest() (int, error)       { return 0, nil }
func (generated) Close() error             { return nil }
