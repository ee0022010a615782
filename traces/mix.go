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
	rng   *rand.Rand
	sets  []mixSet
	total int // requests of all sets
}

type mixSet struct {
	name           string
	requests       int
	prompt, output column
}

func newMix(names []string, t Tokenizer, output string, seed uint64) *mix {
	table := loadTable()
	m := &mix{rng: des.Rand(seed, "traces.lengths")}
	for _, name := range names {
		s := findSet(table, name)
		m.sets = append(m.sets, mixSet{name, s.requests, s.prompt(t), s.output(output)})
		m.total += s.requests
	}
	return m
}

func (m *mix) next() (sim.Arrival, error) {
	i := 0
	for k := m.rng.IntN(m.total) - m.sets[0].requests; k >= 0; k -= m.sets[i].requests {
		i++
	}
	s := &m.sets[i]
	return sim.Arrival{
		Prompt: int(s.prompt.interpolated(m.rng.Float64()) + 0.5),
		Output: int(s.output.stepped(m.rng.Float64())),
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
