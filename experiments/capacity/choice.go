package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// Choice is the result of one candidate.
type Choice struct {
	Name    string         `json:"name"`
	Family  string         `json:"family,omitempty"` // the name, without a step size of the plan's own
	System  string         `json:"system"`
	Engine  string         `json:"engine"`
	Model   string         `json:"model"`
	GPU     string         `json:"gpu"`
	Axes    map[string]any `json:"axes"`
	Outcome string         `json:"outcome"` // meets, dearer, misses, too large, too short
	Reason  string         `json:"reason,omitempty"`

	GPUsPerReplica int     `json:"gpus_per_replica"`
	StepTokens     int     `json:"step_tokens"` // at most, prefill and decode together
	Replicas       int     `json:"replicas"`    // spare ones too; 0 where it is not known
	GPUs           int     `json:"gpus"`
	Price          Price   `json:"price"`
	USDPerHour     float64 `json:"usd_per_hour"` // of one that is dearer, at least
	// The whole cost divided by the prompt, output and total tokens of completed requests.
	USDPerMInput  float64 `json:"usd_per_million_input_tokens"`
	USDPerMOutput float64 `json:"usd_per_million_output_tokens"`
	USDPerMTotal  float64 `json:"usd_per_million_total_tokens"`

	// Limits are the shares of the service level's limits, nearest first: under the load on all
	// replicas if the candidate meets the level, else with the planned replicas and headroom. Planned
	// are always the latter.
	Limits         []Share `json:"limits"`
	Planned        []Share `json:"planned"`
	ThroughputTokS float64 `json:"throughput_tok_s"`
	// Preempted counts preemptions in a run under the load. RecomputedShare is the fraction of
	// step time spent on computing dropped KV again.
	Preempted       int      `json:"preempted"`
	RecomputedShare float64  `json:"recomputed_share"`
	Largest         *float64 `json:"largest_load"` // that the replicas hold, of the cheapest
	Headroom        *float64 `json:"headroom"`     // load that could be added, over the load
	LimitedBy       []string `json:"limited_by"`   // limits missed beyond it
	// Beyond is the limit with the largest miss at Fails, the smallest load that fails; nil if no
	// load failed.
	Beyond  *Share   `json:"beyond,omitempty"`
	Fails   float64  `json:"fails,omitempty"`
	Effects []Effect `json:"effects"`  // of a tenth more of each resource, beyond it
	Short   []string `json:"short_of"` // effective ones, largest effect first
	Runs    int      `json:"runs"`
}

// choice returns the option's entry in the answer.
func (o *option) choice() Choice {
	s := &o.Point.System
	c := Choice{Name: o.Label(), Family: cmp.Or(o.family, o.Label()), System: s.Name, Engine: s.Engine,
		Model: o.Point.Model, GPU: o.Point.GPU, Axes: config.SettingsMap(o.Settings), Outcome: o.outcome,
		GPUsPerReplica: o.gpus, StepTokens: s.MaxTokens, Price: o.price, Runs: len(o.runs)}
	if r := o.last(); r != nil {
		c.Limits = nearestFirst(r.shares())
		c.Planned = c.Limits
	}
	switch o.outcome {
	case Meets:
		c.meets(o)
	case Misses:
		c.Reason = fmt.Sprintf("misses %s with %s", strings.Join(o.missed(), " and "), counted(o.most))
		if len(c.Limits) > 0 {
			c.Reason = fmt.Sprintf("%s is %.3g times its limit with %s", c.Limits[0].Name, c.Limits[0].Of,
				o.missLoad())
		}
	case Dearer:
		c.USDPerHour = float64(o.most+1+o.spare) * o.replica
		c.Reason = fmt.Sprintf("at least %s an hour", USD(c.USDPerHour))
		if o.most > 0 {
			c.Reason = fmt.Sprintf("misses %s with %s, so at least %s an hour",
				strings.Join(o.missed(), " and "), counted(o.most), USD(c.USDPerHour))
		}
	}
	return c
}

// nearestFirst sorts shares, the nearest limit first.
func nearestFirst(all []Share) []Share {
	slices.SortStableFunc(all, func(x, y Share) int { return cmp.Compare(y.Of, x.Of) })
	return all
}

// meets fills in the cost and capacity of a choice that meets the level.
func (c *Choice) meets(o *option) {
	c.Replicas, c.GPUs, c.USDPerHour = o.replicas(), o.replicas()*o.gpus, o.usd()
	c.Planned = nearestFirst(o.found.shares())
	turns := turnsOf(&o.Point.Workload).mean
	in := tokensPerSecond(o.expected, turns, func(s *metrics.Summary) float64 { return s.PromptTokS })
	out := tokensPerSecond(o.expected, turns, func(s *metrics.Summary) float64 {
		return s.ThroughputTokS
	})
	c.ThroughputTokS = out
	for i := range o.expected.sums {
		sum := &o.expected.sums[i]
		c.Preempted += sum.Preempted
		c.RecomputedShare = max(c.RecomputedShare, sum.RecomputedShare)
	}
	perMillion := func(rate float64) float64 {
		if rate == 0 {
			return 0
		}
		return c.USDPerHour / 3600 / rate * 1e6
	}
	c.USDPerMInput, c.USDPerMOutput, c.USDPerMTotal = perMillion(in), perMillion(out),
		perMillion(in+out)
	ceiling := o.capacity
	if ceiling == nil {
		return
	}
	c.LimitedBy, c.Effects, c.Short = ceiling.limitedBy, ceiling.effects, ceiling.short()
	largest := ceiling.load
	if _, unit := loadOf(&o.Point.Workload); unit == loadClients {
		largest = float64(clientsOf(largest))
	}
	if ceiling.beyond.Of > 1 {
		c.Beyond, c.Fails = &ceiling.beyond, ceiling.fails
	}
	headroom := largest/o.load - 1
	c.Largest, c.Headroom = &largest, &headroom
}

// tokensPerSecond returns prompt or output tokens per second at the run's load. If requests arrive
// at a rate, it is the rate times the turns per session (1 without sessions) times the tokens per
// request, so that warm-up and drain do not matter. With rejections, which end sessions early, the
// run's own throughput is used.
func tokensPerSecond(r *attempt, turns float64, of func(*metrics.Summary) float64) float64 {
	sum := 0.0
	for i := range r.sums {
		s := &r.sums[i]
		rate := of(s)
		whole := turns == 1 || s.Rejected == 0
		if whole && s.Rate > 0 && s.RequestThroughput > 0 && s.Window == nil {
			rate *= s.Rate * turns * s.ServedShare / s.RequestThroughput
		}
		sum += rate / float64(len(r.sums))
	}
	return sum
}

// missed names the limits that the last deciding run of the option missed.
func (o *option) missed() []string {
	for _, r := range slices.Backward(o.runs) {
		if r.stage == stageReplicas && !r.holds() {
			return r.why()
		}
	}
	return nil
}

// missLoad describes the load of the run of a miss.
func (o *option) missLoad() string {
	r := o.last()
	if r.load == o.target {
		return counted(r.replicas)
	}
	return fmt.Sprintf("one replica under 1/%.4g of the load", o.target/r.load)
}

func counted(replicas int) string {
	if replicas == 1 {
		return "one replica"
	}
	return fmt.Sprintf("%d replicas", replicas)
}

// USD formats a price in dollars.
func USD(x float64) string {
	if x > 0 && x < 0.995 {
		return fmt.Sprintf("$%.3f", x)
	}
	return fmt.Sprintf("$%.2f", x)
}
