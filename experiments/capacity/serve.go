package capacity

import (
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// repository finds the model's repository in the source of its shape.
const repository = `^config\.json of ([\w.-]+/[\w.-]*\w)`

// program is a serving program that a plan can write a command for.
type program struct {
	name string // as people write it
	mode string // prefix_cache.mode that it does not have
	tree string // why
	off  string // flag that switches its prefix cache off
	ssd  string // its requirement for the tier on SSD
	// flags returns the words of the command.
	flags func(l *launch) []string
}

// programs are the values of program in engine files.
var programs = map[string]program{
	"vllm": {name: "vLLM", mode: sim.PrefixTree, off: vllmUncached, flags: vllmFlags,
		tree: "vLLM caches prefixes by blocks, not by the radix tree of SGLang",
		ssd:  "vLLM needs a KV connector for it"},
	"sglang": {name: "SGLang", mode: sim.PrefixVLLM, off: sglangUncached, flags: sglangFlags,
		tree: "SGLang caches prefixes by a radix tree, not by hashed blocks",
		ssd:  "SGLang needs --hicache-storage-backend for it"},
}

// Flags that switch the prefix cache off.
const (
	vllmUncached   = "--no-enable-prefix-caching"
	sglangUncached = "--disable-radix-cache"
)

// oldVLLM is the engine of vLLM 0.5 and 0.6, which lack some flags and have other defaults.
const oldVLLM = "vllm-0.5"

// launch has the inputs of a command.
type launch struct {
	*sim.Spec
	model  string // repository or folder of the weights, quoted for a shell
	shape  llm.Model
	tokens int   // whose KV fits HBM
	kvHBM  int64 // bytes of KV in the HBM of each GPU
	cached bool  // the server has a prefix cache
}

// ServeCommand returns the command that starts one replica of a point's server. why explains why
// there is none.
func ServeCommand(p *config.Point) (command, why string, err error) {
	engine, err := hw.LoadEngine(p.System.Engine)
	if err != nil {
		return "", "", err
	}
	l, err := launchOf(p)
	if err != nil {
		return "", "", err
	}
	of, ok := programs[engine.Program]
	old, chunked := l.Engine == oldVLLM, l.Prefill.Split == "chunked"
	switch {
	case !ok:
		why = fmt.Sprintf("engine %s is neither vLLM nor SGLang", l.Engine)
	case !stock(l.Spec):
		why = of.name + " as released has no such sparse attention, and offloads KV otherwise"
	case l.PrefixCache.Mode == of.mode:
		why = fmt.Sprintf("prefix_cache.mode = %q: %s", l.PrefixCache.Mode, of.tree)
	case l.ExpertParallel > 1 && l.ExpertParallel < l.TensorParallel:
		why = of.name + " spreads experts over all GPUs or none"
	case old && (l.Speculation.Tokens > 0 || l.ExpertParallel > 1):
		why = "vLLM of this age has neither MTP layers nor expert parallelism"
	case old && l.cached && chunked:
		why = "vLLM of this age fails at a prefix hit when prefills are chunked"
	case l.Scheduler != engine.Defaults.Scheduler || !chunked && l.Prefill.Split != "plain":
		why = fmt.Sprintf("%s as released does not schedule with system.scheduler = %q and "+
			"prefill.split = %q", of.name, l.Scheduler, l.Prefill.Split)
	case engine.Program == "sglang" && l.PrefixCache.DRAMGiB > 0 &&
		l.hostGB()*1e9 <= float64(l.kvHBM):
		why = fmt.Sprintf("prefix_cache.dram_gib = %g: SGLang does not start with less KV in host "+
			"memory than in HBM", l.PrefixCache.DRAMGiB)
	}
	if why != "" {
		return "", why, nil
	}
	return strings.Join(of.flags(l), " "), "", nil
}

// launchOf returns the inputs of a point's command, its tokens in whole blocks.
func launchOf(p *config.Point) (*launch, error) {
	model, err := llm.Load(p.Model)
	if err != nil {
		return nil, err
	}
	h, err := p.Hardware()
	if err != nil {
		return nil, err
	}
	l := &launch{Spec: &p.System, model: servedModel(p.Model, model.Source), shape: model,
		kvHBM: h.KV, cached: caches(p)}
	l.tokens = int(h.KV/h.Shard.KVBytesPerToken()) / l.BlockTokens * l.BlockTokens
	return l, nil
}

// hostGB returns the host memory of each GPU for cached prefixes in whole GB.
func (l *launch) hostGB() float64 {
	return math.Round(l.PrefixCache.DRAMGiB * (1 << 30) / 1e9 / float64(l.TensorParallel))
}

// kvBytesEach returns the bytes of a value of KV.
func (l *launch) kvBytesEach() int {
	if each, ok := map[string]int{"fp8": 1, "bf16": 2}[l.KVDtype]; ok {
		return each
	}
	return l.shape.KVBytesEach
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

// vllmFlags returns the words that start vLLM. Flags that are its defaults in each version are left
// out, and flags whose defaults depend on the version or the card are not.
//
// Checked against the engine arguments of vLLM 0.5.3 (docs/models/engine_args), of 0.14
// (config/cache.py, config/scheduler.py, engine/arg_utils.py) and of 0.30 (the same files):
//
//	--max-num-seqs, --max-num-batched-tokens  the first is at most the second, or vLLM stops
//	--kv-cache-memory-bytes                   a GPU; from 0.11 on
//	--block-size                              left out at 16: MLA's kernels need another
//	--kv-cache-dtype                          bfloat16 only for checkpoints with FP8 KV
//	--max-model-len                           auto from 0.14 on: the longest that fits. Without
//	                                          chunks at most --max-num-batched-tokens, or vLLM stops
//	--kv-offloading-size                      GiB of all GPUs; from 0.12 on, its backend too
//	--enable-prefix-caching                   default from 0.8 on, --enable-chunked-prefill too
//	--long-prefill-token-threshold            most tokens of a prompt in a step; from 0.8 on
//	--speculative-config                      method mtp from 0.11 on
func vllmFlags(l *launch) []string {
	old, chunked := l.Engine == oldVLLM, l.Prefill.Split == "chunked"
	f := flags{"vllm serve " + l.model}
	if old { // vllm serve begins with 0.5.3
		f = flags{"python -m vllm.entrypoints.openai.api_server --model " + l.model}
	}
	f.when(l.TensorParallel > 1, "--tensor-parallel-size %d", l.TensorParallel)
	f.when(l.ExpertParallel > 1, "--enable-expert-parallel")
	f.add("--max-num-seqs %d", min(l.MaxRequests, l.MaxTokens))
	f.add("--max-num-batched-tokens %d", l.MaxTokens)
	sized := l.KVGiB > 0 && !old
	f.when(sized, "--kv-cache-memory-bytes %d", int64(l.KVGiB*(1<<30)))
	f.when(!sized, "--gpu-memory-utilization %g", l.Utilisation)
	f.when(l.BlockTokens != 16, "--block-size %d", l.BlockTokens)
	f.when(l.KVDtype == "fp8", "--kv-cache-dtype fp8")
	f.when(l.shape.KVBytesEach < l.kvBytesEach(), "--kv-cache-dtype bfloat16")
	fits := l.tokens
	if !chunked {
		fits = min(fits, l.MaxTokens)
	}
	switch {
	case fits >= l.shape.MaxContext:
	case chunked && !old:
		f.add("--max-model-len auto")
	default:
		f.add("--max-model-len %d", fits)
	}
	f.when(chunked && old, "--enable-chunked-prefill")
	f.when(!chunked && !old, "--no-enable-chunked-prefill")
	f.when(chunked && !old && l.Prefill.ChunkTokens < l.MaxTokens,
		"--long-prefill-token-threshold %d", l.Prefill.ChunkTokens)
	f.when(l.cached && old, "--enable-prefix-caching")
	f.when(!l.cached && !old, vllmUncached)
	f.when(l.PrefixCache.DRAMGiB > 0, "--kv-offloading-size %g --kv-offloading-backend native",
		l.PrefixCache.DRAMGiB)
	f.when(l.Speculation.Tokens > 0,
		`--speculative-config '{"method":"mtp","num_speculative_tokens":%d}'`, l.Speculation.Tokens)
	return f
}

// sglangFlags returns the words that start SGLang, without flags that are its defaults in each
// version.
//
// Checked against docs/advanced_features/server_arguments.md and srt/server_args.py of SGLang 0.4.6
// and 0.5.13:
//
//	python -m sglang.launch_server  0.5.13 prefers sglang serve and starts with either
//	--chunked-prefill-size          a multiple of --page-size, or SGLang stops; -1: whole prompts
//	--max-total-tokens              a bound of the pool; --mem-fraction-static still sizes it
//	--kv-cache-dtype                bf16 only for checkpoints with FP8 KV and for an indexer, whose
//	                                default depends on the card
//	--context-length                left out: SGLang starts with less KV than one context
//	--hicache-size                  whole GB (1e9) a GPU, more than its KV in HBM; 0: a ratio
//	--speculative-algorithm         EAGLE, whose drafts are the model's MTP layers
func sglangFlags(l *launch) []string {
	f := flags{"python -m sglang.launch_server --model-path " + l.model}
	f.when(l.TensorParallel > 1, "--tp-size %d", l.TensorParallel)
	f.when(l.ExpertParallel > 1, "--ep-size %d", l.ExpertParallel)
	f.add("--max-running-requests %d", l.MaxRequests)
	if l.Prefill.Split == "chunked" {
		chunk := min(l.MaxTokens, l.Prefill.ChunkTokens)
		f.add("--chunked-prefill-size %d", max(chunk/l.BlockTokens, 1)*l.BlockTokens)
	} else {
		f.add("--chunked-prefill-size -1 --max-prefill-tokens %d", l.MaxTokens)
	}
	f.add("--mem-fraction-static %g", l.Utilisation)
	f.when(l.KVGiB > 0, "--max-total-tokens %d", l.tokens)
	f.when(l.BlockTokens != 1, "--page-size %d", l.BlockTokens)
	f.when(l.kvBytesEach() == 1, "--kv-cache-dtype fp8_e4m3")
	f.when(l.KVDtype == "bf16" && (l.shape.KVBytesEach == 1 || l.shape.IsIndexed()),
		"--kv-cache-dtype bf16")
	f.when(l.Conservativeness != 1, "--schedule-conservativeness %g", l.Conservativeness)
	f.when(!l.cached, sglangUncached)
	f.when(l.PrefixCache.DRAMGiB > 0, "--enable-hierarchical-cache --hicache-size %.0f "+
		"--hicache-write-policy %s", l.hostGB(), writePolicies[l.PrefixCache.Write])
	f.when(l.Speculation.Tokens > 0, "--speculative-algorithm EAGLE --speculative-num-steps %d "+
		"--speculative-eagle-topk 1 --speculative-num-draft-tokens %d", l.Speculation.Tokens,
		l.Speculation.Tokens+1)
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

// ServeLacks lists settings that a point's command cannot express or switches off; "" if
// there is nothing.
func ServeLacks(p *config.Point) string {
	s := &p.System
	var lacks []string
	if model, err := llm.Load(p.Model); err == nil &&
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
	cache := &s.PrefixCache
	if cache.SSDGiB > 0 {
		lacks = append(lacks, fmt.Sprintf("prefix_cache.ssd_gib = %g is not expressed: %s", cache.SSDGiB,
			of.ssd))
	}
	if of.name == "vLLM" && cache.DRAMGiB > 0 && cache.Write != sim.WriteThrough {
		lacks = append(lacks, fmt.Sprintf("prefix_cache.write = %q is not expressed: vLLM writes "+
			"through", cache.Write))
	}
	return strings.Join(lacks, "; ")
}
