package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/answers"
)

// planFlags are a whole purchase question on the command line. With a file they override its keys.
type planFlags struct {
	Model  string   `placeholder:"MODEL" complete:"models" help:"A built-in model (list models) or the path of its config.json."`
	GPUs   []string `name:"gpus" placeholder:"GPU,.." complete:"cards" help:"Cards to choose from, as in h100,h200 (list gpus)."`
	Input  string   `placeholder:"TOKENS" help:"Tokens of a prompt, as in 64k (64,000), or their distribution, as in 'uniform(32k, 128k)'."`
	Output string   `placeholder:"TOKENS" help:"Tokens of an output, in the same words."`
	Rate   string   `placeholder:"RATE" help:"Requests per second to all replicas together, as in 2 or 90/min."`
	TTFT   string   `name:"ttft" placeholder:"TIME" help:"Limit of P99 TTFT, as in 15s; --set slo.ttft_stat=mean takes another statistic."`
	TBT    string   `name:"tbt" placeholder:"TIME" help:"Limit of P99 TBT, as in 100ms."`
}

// sets returns the settings of the flags.
func (f *planFlags) sets() (sets []string) {
	tokens := func(text string) string {
		if text == "" || strings.Contains(text, "(") {
			return text
		}
		return "fixed(" + text + ")"
	}
	for _, s := range []struct{ key, value string }{
		{"model", f.Model}, {"workload.prompt_lengths", tokens(f.Input)},
		{"workload.output_lengths", tokens(f.Output)}, {"workload.rate", f.Rate},
		{"slo.ttft_s", f.TTFT}, {"slo.tbt_s", f.TBT},
	} {
		if s.value != "" {
			sets = append(sets, s.key+"="+s.value)
		}
	}
	return sets
}

// alone returns the settings of flags without a file: current vLLM at middle prices. own settings
// follow. It returns an error if a part of the question is missing.
func (f *planFlags) alone(own []string) ([]string, error) {
	sets := append([]string{"system.preset=vllm", "plan.prices=mid"}, f.sets()...)
	var missing []string
	for _, want := range []struct {
		flag string
		have bool
		keys string
	}{
		{"--model", f.Model != "", "model="}, {"--gpus", len(f.GPUs) > 0, "gpu="},
		{"--input", f.Input != "", "workload."}, {"--output", f.Output != "", "workload."},
		{"--rate", f.Rate != "", "workload."}, {"--ttft or --tbt", f.TTFT+f.TBT != "", "slo."},
	} {
		set := slices.ContainsFunc(own, func(s string) bool { return strings.HasPrefix(s, want.keys) })
		if !want.have && !set {
			missing = append(missing, want.flag)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s: missing; without a file a plan wants --model, --gpus, --input, "+
			"--output, --rate and a limit, as in --ttft 15s", strings.Join(missing, ", "))
	}
	return append(sets, own...), nil
}

// cards returns the full names of the flag's cards. A prefix stands for the only card that begins
// with it; PCIe cards are ignored, so h100 is the SXM card.
func (f *planFlags) cards() (cards []string, err error) {
	known := hw.CardNames()
	for _, name := range f.GPUs {
		name = strings.TrimSpace(name)
		var begin []string
		for _, card := range known {
			if strings.HasPrefix(card, strings.ToLower(name)+"-") && !strings.HasSuffix(card, "-pcie") {
				begin = append(begin, card)
			}
		}
		switch {
		case slices.Contains(known, name) || strings.HasSuffix(name, ".toml"):
		case len(begin) == 1:
			name = begin[0]
		case len(begin) > 1:
			return nil, fmt.Errorf("--gpus %s: several cards begin so; name one or more of %s", name,
				strings.Join(begin, ", "))
		default:
			return nil, fmt.Errorf("--gpus %s: no such card; use %s, or the path of a card file", name,
				strings.Join(known, ", "))
		}
		if !slices.Contains(cards, name) {
			cards = append(cards, name)
		}
	}
	return cards, nil
}

// name returns the name of the result folder of a question without a file.
func (f *planFlags) name(cards []string) string {
	model := strings.TrimSuffix(filepath.Base(f.Model), filepath.Ext(f.Model))
	if !strings.ContainsAny(f.Model, `/\`) {
		model = f.Model
	}
	for i := range cards {
		cards[i] = answers.CardName(cards[i])
	}
	return strings.Trim(model+"-"+strings.Join(cards, "-"), "-")
}
