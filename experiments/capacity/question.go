package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces"
)

// Question is what a purchase is planned for, as the answer repeats it.
type Question struct {
	Models   []string `json:"models"`
	GPUs     []string `json:"gpus"`
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

// tokensOf sums lengths up. They are not empty.
func tokensOf(all []int) Tokens {
	all = slices.Sorted(slices.Values(all))
	sum := 0.0
	for _, n := range all {
		sum += float64(n)
	}
	at := func(q float64) int { return all[int(math.Ceil(q*float64(len(all))))-1] }
	return Tokens{sum / float64(len(all)), all[0], at(0.5), at(0.99), all[len(all)-1]}
}

// questionOf describes what the options are for: all of them are for one workload.
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
		add(&q.Systems, o.Point.System.Name)
		q.Context = max(q.Context, o.traffic.whole)
	}
	lengths, err := seen.of(&o.Point)
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

// mostSampled is how many requests of a file are looked at, sampledRequests of what has no end.
const mostSampled, sampledRequests = 1_000_000, 10_000

// samples has the lengths of a workload's requests, by tokenizer. Turns of sessions are among them.
type samples map[string][]length

func (s samples) of(p *config.Point) ([]length, error) {
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return nil, err
	}
	if all, ok := s[model.Tokenizer]; ok {
		return all, nil
	}
	w, most := p.Workload, mostSampled
	if !w.FromFile() {
		most = sampledRequests
		if w.Requests > 0 {
			w.Requests = most
		}
	}
	stream, err := traces.Open(w, p.Seed, traces.Tokenizer(model.Tokenizer))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var all []length
	for len(all) < most {
		a, more, err := stream.Next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		for more {
			all = append(all, length{prompt: a.Prompt, output: a.Output})
			if a, more, err = stream.Follow(a, des.Time(0), false); err != nil {
				return nil, err
			}
		}
	}
	s[model.Tokenizer] = all
	return all, nil
}

// room is the longest request that a server takes, in tokens.
type room struct {
	prompt int // of a prompt, without its output
	whole  int // of both
	key    string
}

// contextOf is the room of a point's server, and what to change for more.
func contextOf(p *config.Point) (r room, err error) {
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return r, err
	}
	r = room{model.MaxContext, model.MaxContext, fmt.Sprintf("the context of model %s, %d tokens "+
		"(rope_scaling and max_position_embeddings of its config.json, max_context of a TOML file)",
		p.Model, model.MaxContext)}
	if !p.System.Offload {
		if r.whole, err = longestContext(p, &model); err != nil {
			return r, err
		}
		if r.whole < model.MaxContext {
			r.prompt = r.whole
			r.key = fmt.Sprintf("HBM, which has room for the KV of %d tokens beside the weights "+
				"(system.tensor_parallel, a larger gpu)", r.whole)
		}
	}
	if n := p.System.MaxPromptTokens; n > 0 && n < r.prompt {
		r.prompt = n
		r.key = fmt.Sprintf("system.max_prompt_tokens = %d", n)
	}
	return r, nil
}

// mostTooLong is the share of the requests that may be longer than a candidate's context: what it
// serves with more of them cut or refused is other traffic.
const mostTooLong = 0.01

// tooLong are the requests that are longer than a candidate's context.
type tooLong struct {
	room
	over, all int
	longest   int // request of all, prompt and output
	prompt    int // longest prompt
}

func (t *tooLong) share() float64 { return float64(t.over) / float64(max(t.all, 1)) }

func (t *tooLong) String() string {
	return fmt.Sprintf("%.3g %% of the requests are longer than %s; the longest prompt has %d "+
		"tokens, "+
		"and %d with its output", 100*t.share(), t.key, t.prompt, t.longest)
}

func (s samples) tooLong(p *config.Point) (t tooLong, err error) {
	if t.room, err = contextOf(p); err != nil {
		return t, err
	}
	lengths, err := s.of(p)
	t.all = len(lengths)
	for _, l := range lengths {
		if l.prompt > t.room.prompt || l.prompt+l.output > t.whole {
			t.over++
		}
		t.longest, t.prompt = max(t.longest, l.prompt+l.output), max(t.prompt, l.prompt)
	}
	return t, err
}

// tooShort is the error of a question that no candidate has the context for.
func tooShort(options []*option) error {
	best := slices.MaxFunc(options, func(x, y *option) int {
		return x.traffic.whole - y.traffic.whole
	})
	return fmt.Errorf("no candidate has room for the traffic: of %s, the one with the most, %s; "+
		"raise that, or leave longer requests out of the traffic", best.Label, best.traffic.String())
}

// String is the range in words.
func (t Tokens) String() string {
	if t.Least == t.Most {
		return fmt.Sprintf("%d tokens", t.Most)
	}
	return fmt.Sprintf("%.0f tokens on average, P50 %d, P99 %d, %d to %d", t.Mean, t.P50, t.P99,
		t.Least,
		t.Most)
}

// String is the question in words, a line each.
func (q *Question) String() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s%s\n", name, fmt.Sprintf(format, args...))
	}
	row("model", "%s, context of %d tokens", strings.Join(q.Models, ", "), q.Context)
	row("cards", "%s", strings.Join(q.GPUs, ", "))
	row("prompts", "%s", q.Prompts)
	row("outputs", "%s", q.Outputs)
	load := q.Load
	if q.Turns > 0 {
		load += fmt.Sprintf(", of %.3g turns and %g s between them on average", q.Turns, q.ThinkS)
	}
	row("load", "%s", load)
	row("limits", "%s", q.SLO)
	row("margin", "%g %% more load, %d spare replicas", 100*q.Headroom, q.Spare)
	return b.String()
}
