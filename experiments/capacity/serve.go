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

// program is a serving program that a plan can write a command for.
type program struct {
	name  string // as people write it
	mode  string // prefix_cache.mode that it does not have
	tree  string // why
	off   string // flag that switches its prefix cache off
	tiers bool   // the command has the tier in DRAM
	// flags returns the words of the command; the KV of the given tokens fits.
	flags func(p *config.Point, m *hw.Model, tokens int) []string
}

// programs are the values of program in engine files.
var programs = map[string]program{
	"vllm": {name: "vLLM", mode: sim.PrefixTree, off: vllmUncached, flags: vllmFlags,
		tree: "vLLM caches prefixes by blocks, not by the radix tree of SGLang"},
	"sglang": {name: "SGLang", mode: sim.PrefixVLLM, off: sglangUncached,
		flags: sglangFlags, tiers: true,
		tree: "SGLang caches prefixes by a radix tree, not by hashed blocks"},
}

// Flags that switch the prefix cache off.
const (
	vllmUncached   = "--no-enable-prefix-caching"
	sglangUncached = "--disable-radix-cache"
)

// oldVLLM is the engine of vLLM 0.5, which lacks some flags and has other defaults.
const oldVLLM = "vllm-0.5"

// ServeCommand returns the command that starts one replica of a point's server. why explains why
// there is none.
func ServeCommand(p *config.Point) (command, why string, err error) {
	s := &p.System
	engine, err := hw.LoadEngine(s.Engine)
	if err != nil {
		return "", "", err
	}
	of, ok := programs[engine.Program]
	switch {
	case !ok:
		return "", fmt.Sprintf("engine %s is neither vLLM nor SGLang", s.Engine), nil
	case !stock(s):
		return "", of.name + " as released has no such sparse attention, and offloads KV otherwise", nil
	case s.PrefixCache.Mode == of.mode:
		return "", fmt.Sprintf("prefix_cache.mode = %q: %s", s.PrefixCache.Mode, of.tree), nil
	case s.ExpertParallel > 1 && s.ExpertParallel < s.TensorParallel:
		return "", of.name + " spreads experts over all GPUs or none", nil
	case s.Speculation.Tokens > 0 && s.Engine == oldVLLM:
		return "", "vLLM of this age drafts with no MTP layers", nil
	case s.Scheduler != engine.Defaults.Scheduler || s.Prefill.Split != "chunked" &&
		s.Prefill.Split != "plain":
		return "", fmt.Sprintf("%s as released does not schedule with system.scheduler = %q and "+
			"prefill.split = %q", of.name, s.Scheduler, s.Prefill.Split), nil
	}
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return "", "", err
	}
	tokens, err := kvTokens(p)
	if err != nil {
		return "", "", err
	}
	return strings.Join(of.flags(p, &model, tokens), " "), "", nil
}

// flags collects the words of a command.
type flags []string

func (f *flags) add(format string, values ...any) {
	*f = append(*f, fmt.Sprintf(format, values...))
}

// when adds words under a condition.
func (f *flags) when(ok bool, format string, values ...any) {
	if ok {
		f.add(format, values...)
	}
}

// vllmFlags returns the words that start vLLM. It does not start with a context beyond its KV.
func vllmFlags(p *config.Point, model *hw.Model, tokens int) []string {
	s, old := &p.System, p.System.Engine == oldVLLM
	f := flags{"vllm serve " + servedModel(p.Model, model.Source)}
	f.add("--tensor-parallel-size %d", s.TensorParallel)
	f.when(s.ExpertParallel > 1, "--enable-expert-parallel")
	f.add("--max-num-seqs %d", s.MaxRequests)
	f.add("--max-num-batched-tokens %d", s.MaxTokens)
	sized := s.KVGiB > 0 && !old
	f.when(sized, "--kv-cache-memory-bytes %d", int64(s.KVGiB*(1<<30)))
	f.when(!sized, "--gpu-memory-utilization %g", s.Utilisation)
	f.add("--block-size %d", s.BlockTokens)
	f.when(s.KVDtype == "fp8", "--kv-cache-dtype fp8")
	f.when(s.KVDtype == "bf16", "--kv-cache-dtype bfloat16")
	f.when(tokens < model.MaxContext, "--max-model-len %d", tokens)
	chunked := s.Prefill.Split == "chunked"
	f.when(chunked, "--enable-chunked-prefill")
	f.when(!chunked && !old, "--no-enable-chunked-prefill")
	f.when(chunked && !old && s.Prefill.ChunkTokens < s.MaxTokens,
		"--long-prefill-token-threshold %d", s.Prefill.ChunkTokens)
	caches := caches(p)
	f.when(caches, "--enable-prefix-caching")
	f.when(!caches && !old, vllmUncached)
	f.when(s.Speculation.Tokens > 0,
		`--speculative-config '{"method":"mtp","num_speculative_tokens":%d}'`, s.Speculation.Tokens)
	return f
}

// sglangFlags returns the words that start SGLang.
func sglangFlags(p *config.Point, model *hw.Model, tokens int) []string {
	s := &p.System
	f := flags{"python -m sglang.launch_server --model-path " + servedModel(p.Model, model.Source)}
	f.add("--tp-size %d", s.TensorParallel)
	f.when(s.ExpertParallel > 1, "--ep-size %d", s.ExpertParallel)
	f.add("--max-running-requests %d", s.MaxRequests)
	if s.Prefill.Split == "chunked" {
		f.add("--chunked-prefill-size %d", min(s.MaxTokens, s.Prefill.ChunkTokens))
	} else {
		f.add("--chunked-prefill-size -1 --max-prefill-tokens %d", s.MaxTokens)
	}
	f.add("--mem-fraction-static %g", s.Utilisation)
	f.when(s.KVGiB > 0, "--max-total-tokens %d", tokens)
	f.add("--page-size %d", s.BlockTokens)
	f.when(s.KVDtype == "fp8", "--kv-cache-dtype fp8_e4m3")
	f.when(s.KVDtype == "bf16", "--kv-cache-dtype bf16")
	f.when(tokens < model.MaxContext, "--context-length %d", tokens)
	f.when(s.Conservativeness != 1, "--schedule-conservativeness %g", s.Conservativeness)
	f.when(!caches(p), sglangUncached)
	f.when(s.PrefixCache.DRAMGiB > 0, "--enable-hierarchical-cache --hicache-size %.0f "+
		"--hicache-write-policy %s", s.PrefixCache.DRAMGiB*(1<<30)/1e9/float64(s.TensorParallel),
		writePolicies[s.PrefixCache.Write])
	f.when(s.Speculation.Tokens > 0, "--speculative-algorithm EAGLE --speculative-num-steps %d "+
		"--speculative-eagle-topk 1 --speculative-num-draft-tokens %d", s.Speculation.Tokens,
		s.Speculation.Tokens+1)
	return f
}

// writePolicies are the values of --hicache-write-policy by prefix_cache.write.
var writePolicies = map[string]string{sim.WriteThrough: "write_through",
	sim.WriteSelective: "write_through_selective", sim.WriteBack: "write_back"}

// caches reports whether a server of a point has a prefix cache.
func caches(p *config.Point) bool { return p.System.CachesPrefixes() || p.Workload.PrefixHit > 0 }

// placeholder stands for the weights in a command if their location is unknown.
const placeholder = "MODEL"

// servedModel returns the repository or folder from which a server loads a model, quoted for a
// shell.
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

// ServeLacks lists what the command of a point cannot express and what it switches off; "" if
// there is nothing.
func ServeLacks(p *config.Point) string {
	s := &p.System
	var lacks, tiers []string
	if model, err := hw.LoadModel(p.Model); err == nil &&
		servedModel(p.Model, model.Source) == placeholder {
		lacks = append(lacks, fmt.Sprintf("%s is the repository or folder of the weights of %s",
			placeholder, p.Model))
	}
	var of program
	if engine, err := hw.LoadEngine(s.Engine); err == nil {
		of = programs[engine.Program]
	}
	if !caches(p) && s.Engine != oldVLLM {
		lacks = append(lacks, fmt.Sprintf("%s switches off a default of %s, because "+
			"prefix_cache.mode = \"off\" is set: a preempted request then computes its KV again", of.off,
			of.name))
	}
	for _, t := range []struct {
		key string
		gib float64
	}{{"prefix_cache.dram_gib", s.PrefixCache.DRAMGiB},
		{"prefix_cache.ssd_gib", s.PrefixCache.SSDGiB}} {
		if t.gib > 0 && !(of.tiers && t.key == "prefix_cache.dram_gib") {
			tiers = append(tiers, fmt.Sprintf("%s = %g", t.key, t.gib))
		}
	}
	if len(tiers) > 0 {
		lacks = append(lacks, strings.Join(tiers, " and ")+" is not expressed: "+
			map[bool]string{true: "SGLang needs --hicache-storage-backend for it", false: "the command " +
				"caches prefixes in HBM alone; vLLM needs a KV connector for tiers below"}[of.tiers])
	}
	return strings.Join(lacks, "; ")
}

// kvTokens returns the tokens whose KV fits memory, in whole blocks.
func kvTokens(p *config.Point) (int, error) {
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
	return int(kv/shard.KVBytesPerToken()) / block * block, nil
}
