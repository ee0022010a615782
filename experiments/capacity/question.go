package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Question is the question of a purchase, as the answer repeats it.
type Question struct {
	Models   []string `json:"models"`
	GPUs     []string `json:"gpus"`
	Cards    []string `json:"cards,omitempty"` // with their changed figures, where any is changed
	Systems  []string `json:"systems"`
	Trace    string   `json:"trace"`
	Prompts  Tokens   `json:"prompt_tokens"` // before any cut
	Outputs  Tokens   `json:"output_tokens"`
	Context  int      `json:"context_tokens"` // largest of a candidate, prompt and output together
	Turns    float64  `json:"turns,omitempty"`
	ThinkS   float64  `json:"think_s,omitempty"`
	Load     string   `json:"load"` // in words
	SLO      string   `json:"slo"`  // in words
	Headroom float64  `json:"headroom"`
	Spare    int      `json:"spare"`
}

// Tokens are the lengths of a workload's prompts or outputs.
type Tokens struct {
	Mean  float64 `json:"mean"`
	Least int     `json:"least"`
	P50   int     `json:"p50"`
	P99   int     `json:"p99"`
	Most  int     `json:"most"`
}

// tokensOf summarizes lengths. all must not be empty.
func tokensOf(all []int) Tokens {
	all = slices.Sorted(slices.Values(all))
	sum := 0.0
	for _, n := range all {
		sum += float64(n)
	}
	at := func(q float64) int { return all[int(math.Ceil(q*float64(len(all))))-1] }
	return Tokens{sum / float64(len(all)), all[0], at(0.5), at(0.99), all[len(all)-1]}
}

// questionOf describes the question. All options must have the same workload.
func questionOf(options []*option, seen samples, plan *config.Plan) (q Question, err error) {
	o := options[0]
	w := &o.Point.Workload
	add := func(list *[]string, name string) {
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	for _, o := range options {
		add(&q.Models, o.Point.Model)
		add(&q.GPUs, o.Point.GPU)
		add(&q.Cards, o.Point.GPU+config.Changed(o.Point.Card))
		add(&q.Systems, o.Point.System.Name)
		q.Context = max(q.Context, o.traffic.whole())
	}
	if slices.Equal(q.Cards, q.GPUs) {
		q.Cards = nil
	}
	lengths, err := seen.of(&o.Point, false)
	if err != nil || len(lengths) == 0 {
		return q, err
	}
	var prompts, outputs []int
	for _, l := range lengths {
		prompts, outputs = append(prompts, l.prompt), append(outputs, l.output)
	}
	q.Trace, q.Prompts, q.Outputs = w.Trace, tokensOf(prompts), tokensOf(outputs)
	if hasTurns(w) {
		q.Turns, q.ThinkS = turnsOf(w).mean, w.ThinkS
	}
	q.Load, q.SLO = describeLoad(w), o.Point.SLO.String(o.asked.bounds)
	q.Headroom, q.Spare = plan.Headroom, plan.Spare
	return q, nil
}

// tooShort returns the error of a question whose requests exceed every candidate's context.
func tooShort(options []*option) error {
	best := slices.MaxFunc(options, func(x, y *option) int {
		return x.traffic.whole() - y.traffic.whole()
	})
	more := "raise that"
	if t := &best.traffic; t.memory < t.longest && t.longest <= t.context {
		more = config.WouldFit(best.Point, t.longest)
	}
	return fmt.Errorf("no candidate has room for the traffic: of %s, the one with the most, %s; "+
		"%s, or leave longer requests out of the traffic", best.Label(), best.traffic.String(), more)
}

// String is the range in words.
func (t Tokens) String() string {
	if t.Least == t.Most {
		return fmt.Sprintf("%d tokens", t.Most)
	}
	return fmt.Sprintf("%.0f tokens on average, P50 %d, P99 %d, %d to %d", t.Mean, t.P50, t.P99,
		t.Least, t.Most)
}

// Lines are the question in words, a line each.
func (q *Question) Lines() []string {
	load := q.Load
	if q.Turns > 0 {
		load += fmt.Sprintf(", of %.3g turns and %g s between them on average", q.Turns, q.ThinkS)
	}
	return []string{
		fmt.Sprintf("model: %s, context of %d tokens", strings.Join(q.Models, ", "), q.Context),
		"cards: " + q.CardsText(),
		"prompts: " + q.Prompts.String(),
		"outputs: " + q.Outputs.String(),
		"load: " + load,
		"limits: " + q.SLO,
		fmt.Sprintf("margin: %g %% more load, %d spare replicas", 100*q.Headroom, q.Spare),
	}
}

// CardsText lists the cards and the figures of each that the configuration changes.
func (q *Question) CardsText() string {
	if len(q.Cards) > 0 {
		return strings.Join(q.Cards, ", ")
	}
	return strings.Join(q.GPUs, ", ")
}
