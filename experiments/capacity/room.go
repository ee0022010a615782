package capacity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// excess is the limit that a request exceeds.
type excess int

const (
	none excess = iota
	ofContext
	ofMemory
	ofKey
	excesses
)

// room is the longest request that a server accepts, in tokens.
type room struct {
	model   string
	context int  // prompt and output together
	memory  int  // the same, whose KV HBM has room for
	prompt  int  // prefill.max_prompt_tokens; 0: no limit of its own
	cuts    bool // longer prompts are truncated
}

// roomOf returns the room of a point's server.
func roomOf(p *config.Point) (r room, err error) {
	model, err := llm.Load(p.Model)
	if err != nil {
		return r, err
	}
	r = room{p.Model, model.MaxContext, model.MaxContext, p.System.Prefill.MaxPromptTokens,
		p.System.Prefill.OverLength == "truncate"}
	if !p.System.Offload.On {
		l, err := launchOf(p)
		if err != nil {
			return r, err
		}
		r.memory = min(l.tokens, r.context)
	}
	return r, nil
}

// whole returns the maximum of prompt plus output.
func (r *room) whole() int { return min(r.context, r.memory) }

// of returns the limit that a request exceeds, and whether its prompt is truncated to the limit;
// otherwise the request is refused.
func (r *room) of(l length) (over excess, cut bool) {
	over, most := ofContext, r.context-l.output
	if r.prompt > 0 && r.prompt < most {
		over, most = ofKey, r.prompt
	}
	switch {
	case l.prompt > most && !(r.cuts && most > 0):
		return over, false
	case min(l.prompt, most)+l.output > r.memory:
		return ofMemory, false
	case l.prompt > most:
		return over, true
	}
	return none, false
}

// name returns the limit in words; key is the setting that increases it.
func (r *room) name(l excess) (name, key string) {
	switch l {
	case ofMemory:
		return fmt.Sprintf("the %d tokens whose KV fits in HBM", r.memory),
			"system.tensor_parallel, a larger gpu"
	case ofKey:
		return fmt.Sprintf("prefill.max_prompt_tokens = %d", r.prompt), ""
	}
	return fmt.Sprintf("the context of %d tokens", r.context), fmt.Sprintf("of model %s: "+
		"rope_scaling and max_position_embeddings of its config.json, max_context of a TOML file",
		r.model)
}

// mostTooLong is the largest permitted share of requests that exceed a candidate's context. With a
// larger share, truncated or refused requests would change the traffic.
const mostTooLong = 0.01

// tooLong counts the requests that exceed a server's room.
type tooLong struct {
	room
	refused, cut [excesses]int // by the limit that decides
	all          int
	longest      int // request of all, prompt and output
	prompt       int // longest prompt
}

func (r room) tooLong(all []length) tooLong {
	t := tooLong{room: r, all: len(all)}
	for _, l := range all {
		if over, cut := r.of(l); cut {
			t.cut[over]++
		} else if over != none {
			t.refused[over]++
		}
		t.longest, t.prompt = max(t.longest, l.prompt+l.output), max(t.prompt, l.prompt)
	}
	return t
}

func (s samples) tooLong(p *config.Point, whole bool) (t tooLong, err error) {
	r, err := roomOf(p)
	if err != nil {
		return t, err
	}
	all, err := s.of(p, whole)
	return r.tooLong(all), err
}

func (t *tooLong) over() (n int) {
	for i := range excesses {
		n += t.refused[i] + t.cut[i]
	}
	return n
}

func (t *tooLong) share() float64 { return float64(t.over()) / float64(max(t.all, 1)) }

// String reports the number of requests that are too long, and the limit that most of them exceed.
func (t *tooLong) String() string {
	most := none
	for i := range excesses {
		if t.refused[i]+t.cut[i] > t.refused[most]+t.cut[most] {
			most = i
		}
	}
	name, key := t.name(most)
	if key != "" {
		name += " (" + key + ")"
	}
	return fmt.Sprintf("%.3g %% of the requests are longer than %s; the longest prompt has %d "+
		"tokens, and %d with its output", 100*t.share(), name, t.prompt, t.longest)
}

// short reports how requests that are too long are handled; "" if there are none.
func (t *tooLong) short() string {
	var parts []string
	add := func(n int, l excess, what string) {
		if n > 0 {
			name, _ := t.name(l)
			parts = append(parts, fmt.Sprintf("%.3g %% of prompts %s: longer than %s",
				100*float64(n)/float64(t.all), what, name))
		}
	}
	for l := range excesses {
		add(t.refused[l], l, "refused")
		add(t.cut[l], l, "truncated")
	}
	return strings.Join(parts, ", ")
}

// TooLong describes the share of the prompts that the systems of variants truncate or refuse, with
// the reason. It returns "" if they serve all prompts. It looks at the first run of each system.
func TooLong(variants [][]config.Point) (string, error) {
	var texts []string
	of := map[string][]string{} // text -> systems
	seen := samples{}
	for _, runs := range variants {
		for i, p := range runs {
			if i > 0 && p.System.Name == runs[i-1].System.Name {
				continue
			}
			p.Workload.Rate = max(p.Workload.Rate, 1) // lengths do not depend on the rate
			t, err := seen.tooLong(&p, true)
			if err != nil {
				return "", err
			}
			text := t.short()
			if of[text] == nil {
				texts = append(texts, text)
			}
			if !slices.Contains(of[text], p.System.Name) {
				of[text] = append(of[text], p.System.Name)
			}
		}
	}
	if len(texts) == 1 {
		return texts[0], nil
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	for i, text := range texts {
		texts[i] = text + " (" + strings.Join(of[text], ", ") + ")"
	}
	const most = 3
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most], fmt.Sprintf("other shares in %d other cases", more))
	}
	return strings.Join(texts, "; "), nil
}

// CheckRefused returns an error if the server of a point refuses more prompts than its service
// level allows, because then no rate meets the level.
func CheckRefused(p *config.Point, seed uint64) error {
	one := *p
	one.Seed, one.Workload.Rate = seed, max(p.Workload.Rate, 1) // lengths do not depend on the rate
	t, err := samples{}.tooLong(&one, true)
	if err != nil {
		return err
	}
	t.cut = [excesses]int{}
	if t.share() <= p.SLO.MissShare {
		return nil
	}
	return fmt.Errorf("%s refuses too many prompts for any rate to meet slo.miss_share = %g: %s; "+
		"prefill.over_length=truncate cuts them, or take a trace of shorter prompts",
		p.SystemLabel(), p.SLO.MissShare, t.short())
}
