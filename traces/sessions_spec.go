package traces

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

// SessionKeys are the keys that have their own defaults with trace = "sessions".
var SessionKeys = []string{"workload.prompt_lengths", "workload.output_lengths", "sessions.turns",
	"sessions.system_prompts", "sessions.system_lengths", "sessions.system_zipf", "workload.think_s"}

// FillSessions sets keys that the user did not choose to the defaults of a trace of sessions.
//
//   - Turns: ShareGPT has 3.51 per conversation on average (94,145 conversations; Zhao et al.,
//     WildChat, ICLR 2024, table 1); 73 % have two or more (Gao et al., CachedAttention, ATC 2024).
//   - Texts: ShareGPT has 94.46 tokens per user text, deviation 626.39, and 348.45 per answer,
//     deviation 269.93 (WildChat, table 1). The distribution is log-normal with these moments.
//   - Think time: in a chat service 80 % of reuses come within 10 minutes, about exponential
//     (Wang et al., KVCache Cache in the Wild, ATC 2025): a mean of 600 s / ln 5.
//   - System prompts: 1,000 tokens, as in vLLM production-stack's multi-round benchmark. Their
//     number and popularity are not published; ten under Zipf's law is an assumption.
func (s *Spec) FillSessions(chosen func(key string) bool) {
	if s.Trace != Sessions {
		return
	}
	d := Spec{PromptLengths: "lognormal(14, 1.95)", OutputLengths: "lognormal(275, 0.69)",
		ThinkS: 370, SessionSpec: SessionSpec{Turns: "lognormal(2.4, 0.84)", SystemPrompts: 10,
			SystemLengths: "fixed(1000)", SystemZipf: 1}}
	for _, key := range SessionKeys {
		if _, name, _ := strings.Cut(key, "."); !chosen(key) {
			tomlfile.Field(s, name).Set(tomlfile.Field(&d, name))
		}
	}
	if s.Sessions > 0 && !chosen("workload.requests") {
		s.Requests = 0
	}
}

// checkSessions rejects keys that do not apply to sessions.
func (s Spec) checkSessions() error {
	switch {
	case s.Sessions > 0 && s.Requests > 0:
		return fmt.Errorf("workload.requests = %d: sessions.count = %d says how many there are; "+
			"leave one out", s.Requests, s.Sessions)
	case s.Sessions > 0 && len(s.Stages) > 0:
		return fmt.Errorf("sessions.count = %d: workload.stages end the run; leave one out",
			s.Sessions)
	case s.SystemPrompts < 0 || s.SystemPrompts > 100_000:
		return fmt.Errorf("sessions.system_prompts = %d: must be 0 to 100000", s.SystemPrompts)
	case !(s.SystemZipf >= 0 && s.SystemZipf <= 100):
		return fmt.Errorf("sessions.system_zipf = %v: must be 0 to 100", s.SystemZipf)
	case s.PrefixHit > 0 && s.Trace == Sessions:
		return s.sharesItself()
	}
	return nil
}

// sharesItself is the error for prefix_hit with a trace that records shared content.
func (s Spec) sharesItself() error {
	return fmt.Errorf("workload.prefix_hit = %v: workload.trace = %q says itself what its prompts "+
		"share; leave prefix_hit out", s.PrefixHit, s.Trace)
}
