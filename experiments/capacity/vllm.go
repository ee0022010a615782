package capacity

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
)

// repository finds the model's repository in the source of its shape.
const repository = `^config\.json of ([\w.-]+/[\w.-]*\w)`

// ServeCommand returns the vLLM command that starts one replica of a point's server. why explains
// why there is none.
func ServeCommand(p *config.Point) (command, why string, err error) {
	s := &p.System
	engine, err := hw.LoadEngine(s.Engine)
	if err != nil {
		return "", "", err
	}
	switch {
	case !strings.HasPrefix(s.Engine, "vllm-"):
		return "", fmt.Sprintf("engine %s is not vLLM", s.Engine), nil
	case !stock(s):
		return "", "vLLM as released has no such sparse attention, and offloads KV otherwise", nil
	case s.PrefixCache.Mode == sim.PrefixTree:
		return "", fmt.Sprintf("vLLM caches prefixes by blocks, not as prefix_cache.mode = %q does, by "+
			"the radix tree of SGLang", s.PrefixCache.Mode), nil
	case s.ExpertParallel > 1 && s.ExpertParallel < s.TensorParallel:
		return "", "vLLM spreads experts over all GPUs or none", nil
	case s.Speculation.Tokens > 0 && s.Engine == "vllm-0.5":
		return "", "vLLM of this age drafts with no MTP layers", nil
	case s.Scheduler != engine.Defaults.Scheduler || s.Prefill.Split != "chunked" &&
		s.Prefill.Split != "plain":
		return "", fmt.Sprintf("vLLM as released does not schedule with system.scheduler = %q and "+
			"prefill.split = %q", s.Scheduler, s.Prefill.Split), nil
	}
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return "", "", err
	}
	args := []string{"vllm serve " + servedModel(p.Model, model.Source)}
	add := func(format string, values ...any) { args = append(args, fmt.Sprintf(format, values...)) }
	add("--tensor-parallel-size %d", s.TensorParallel)
	if s.ExpertParallel > 1 {
		add("--enable-expert-parallel")
	}
	add("--max-num-seqs %d", s.MaxRequests)
	add("--max-num-batched-tokens %d", s.MaxTokens)
	if s.KVGiB > 0 && s.Engine != "vllm-0.5" {
		add("--kv-cache-memory-bytes %d", int64(s.KVGiB*(1<<30)))
	} else {
		add("--gpu-memory-utilization %g", s.Utilisation)
	}
	add("--block-size %d", s.BlockTokens)
	if s.KVDtype != "auto" {
		add("--kv-cache-dtype %s", map[string]string{"fp8": "fp8", "bf16": "bfloat16"}[s.KVDtype])
	}
	longest, err := longestContext(p, &model)
	if err != nil {
		return "", "", err
	}
	if longest < model.MaxContext {
		add("--max-model-len %d", longest)
	}
	switch {
	case s.Prefill.Split == "chunked":
		add("--enable-chunked-prefill")
	case s.Engine != "vllm-0.5":
		add("--no-enable-chunked-prefill")
	}
	if s.Prefill.Split == "chunked" && s.Prefill.ChunkTokens < s.MaxTokens && s.Engine != "vllm-0.5" {
		add("--long-prefill-token-threshold %d", s.Prefill.ChunkTokens)
	}
	switch {
	case s.CachesPrefixes() || p.Workload.PrefixHit > 0:
		add("--enable-prefix-caching")
	case s.Engine != "vllm-0.5":
		add("--no-enable-prefix-caching")
	}
	if s.Speculation.Tokens > 0 {
		add(`--speculative-config '{"method":"mtp","num_speculative_tokens":%d}'`, s.Speculation.Tokens)
	}
	return strings.Join(args, " "), "", nil
}

// placeholder stands for the weights in a command if their location is unknown.
const placeholder = "MODEL"

// servedModel returns the repository or folder from which vLLM loads a model, quoted for a shell.
func servedModel(model, source string) string {
	if found := regexp.MustCompile(repository).FindStringSubmatch(source); found != nil {
		return found[1]
	}
	switch filepath.Ext(model) {
	case ".json", ".toml":
		if filepath.Base(model) != "config.json" {
			return placeholder
		}
		model = filepath.Dir(model)
	}
	if regexp.MustCompile(`^[\w./-]+$`).MatchString(model) {
		return model
	}
	return "'" + strings.ReplaceAll(model, "'", `'\''`) + "'"
}

// ServeLacks lists what the vLLM command of a point cannot express and what it switches off; "" if
// there is nothing.
func ServeLacks(p *config.Point) string {
	s := &p.System
	var lacks, tiers []string
	if model, err := hw.LoadModel(p.Model); err == nil &&
		servedModel(p.Model, model.Source) == placeholder {
		lacks = append(lacks, fmt.Sprintf("%s is the repository or folder of the weights of %s",
			placeholder, p.Model))
	}
	if !s.CachesPrefixes() && p.Workload.PrefixHit == 0 && s.Engine != "vllm-0.5" {
		lacks = append(lacks, "--no-enable-prefix-caching switches off a default of vLLM, because "+
			"prefix_cache.mode = \"off\" is set: a preempted request then computes its KV again")
	}
	for _, t := range []struct {
		key string
		gib float64
	}{{"prefix_cache.dram_gib", s.PrefixCache.DRAMGiB},
		{"prefix_cache.ssd_gib", s.PrefixCache.SSDGiB}} {
		if t.gib > 0 {
			tiers = append(tiers, fmt.Sprintf("%s = %g", t.key, t.gib))
		}
	}
	if len(tiers) > 0 {
		lacks = append(lacks, strings.Join(tiers, " and ")+" is not expressed: the command caches "+
			"prefixes in HBM alone; vLLM needs a KV connector for tiers below")
	}
	return strings.Join(lacks, "; ")
}

// longestContext returns the longest request that fits memory, in tokens. vLLM does not start with
// a longer context.
func longestContext(p *config.Point, model *hw.Model) (int, error) {
	machine, err := p.Machine()
	if err != nil {
		return 0, err
	}
	shard, err := p.Shard()
	if err != nil {
		return 0, err
	}
	kv, err := config.KVBudget(machine, &shard, &p.System)
	if err != nil {
		return 0, err
	}
	block := p.System.BlockTokens
	return min(model.MaxContext, int(kv/shard.KVBytesPerToken())/block*block), nil
}
