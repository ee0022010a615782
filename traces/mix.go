package traces

import (
	"math/rand/v2"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// mix draws lengths from the built-in table. A request first draws its set, in proportion to
// the set's requests, as the paper combines all requests of all sets into one trace; then its
// prompt and its output, each by the set's inverse CDF.
//
// The two draws within a set are independent. What couples prompt and output length in
// LongBench is the task, thus the set; within a set outputs stop at the task's limit or at an
// answer whose length the document does not decide.
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

// generated is what sources without a file have in common: they have no end.
type generated struct{}

func (generated) timed() bool              { return false }
func (generated) texts() bool              { return false }
func (generated) warnings() []warn.Warning { return nil }
func (generated) rest() (int, error)       { return 0, nil }
func (generated) Close() error             { return nil }
