package live

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/live/mem"
	"github.com/sparseserve/sparseserve/cuda/weights"
	"github.com/sparseserve/sparseserve/sim"
)

// Load is the memory-relevant part of a workload.
type Load struct {
	Requests []int // tokens of each request, prompt and output, the longest first
	Prompt   int   // tokens of the longest prompt
}

// tokens returns the maximum sum of tokens of n requests.
func (l *Load) tokens(n int) (sum int) {
	for _, t := range l.Requests[:min(n, len(l.Requests))] {
		sum += t
	}
	return sum
}

// MemoryError reports too little memory, with a table of its uses.
type MemoryError struct {
	Where       string // "device" or "host"
	Needs, Have int64
	Key         string // to lower
	table       string
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("live: %s memory: %s needed at the most, %s free; lower %s\n%s", e.Where,
		mem.GiB(e.Needs), mem.GiB(e.Have), e.Key, e.table)
}

// use is one line of the table.
type use struct {
	what  string
	bytes int64
	key   string // that changes it
}

// Fits returns a *MemoryError if the workload may need more memory than the machine has. It
// allocates nothing. hostBytes is the available host memory; 0: not known. It does not know what
// latent attention needs.
func Fits(m cuda.Machine, cfg Config, load Load, hostBytes int64) error {
	md := cfg.Weights.Config()
	if err := cfg.supported(m); err != nil || md.IsLatent() {
		return err
	}
	info, err := m.Device()
	if err != nil {
		return err
	}
	device, err := cfg.deviceUses(m, &load)
	if err != nil {
		return err
	}
	host := cfg.hostUses(&load)
	free := info.MemoryBytes - info.MemoryBusyBytes
	tables := table("device", device, free) + table("host", host, hostBytes)
	if need := total(device); need > free {
		return &MemoryError{"device", need, free, lower(device, need-free), tables}
	}
	if need := total(host); hostBytes > 0 && need > hostBytes {
		return &MemoryError{"host", need, hostBytes, lower(host, need-hostBytes), tables}
	}
	return nil
}

func (c *Config) deviceUses(m cuda.Machine, l *Load) ([]use, error) {
	md, s, geo := c.Weights.Config(), c.Spec, &c.Geometry
	tokens := s.MaxTokens
	if s.Prefill.Split != "chunked" {
		tokens = max(tokens, max(l.Prompt, s.Prefill.MaxPromptTokens)+s.MaxRequests)
	}
	longest := 0
	if len(l.Requests) > 0 {
		longest = l.Requests[0]
	}
	active, err := c.workspaces(m, geo.Blocks(longest))
	if err != nil {
		return nil, err
	}
	for _, n := range (&scratch{}).needs(&md, padded(tokens), s.MaxRequests,
		padded(s.MaxRequests)) {
		active += mem.WithSpare(n.bytes)
	}
	uses := []use{
		{"weights", md.WeightBytes(), "model"},
		{"KV slots", c.KVBytes / geo.BlockBytes * geo.BlockBytes, "system.kv_gib"},
		{"activations of the largest step", active, "system.max_tokens"},
	}
	if len(c.Patterns) > 0 {
		bytes, err := c.indexBytes(m, longest)
		if err != nil {
			return nil, err
		}
		uses = append(uses, use{"indices of sparse prefill", bytes, "prefill.max_prompt_tokens"})
	}
	if s.Offload.On {
		uses = append(uses, use{"save buffer", ringBlocks(int64(s.Offload.SaveBufferMiB*(1<<20)),
			geo.BlockBytes) * geo.BlockBytes, "offload.save_buffer_mib"})
	}
	pieces := int64(0) // of the arena
	if s.Sparse() {
		capacity := c.KVBytes
		if s.Offload.On {
			capacity = int64(s.DRAMGiB * (1 << 30))
		}
		held := min(int64(l.tokens(s.MaxRequests)), capacity/geo.TokenBytes())
		blocks := held/int64(geo.BlockTokens) + int64(min(s.MaxRequests, len(l.Requests)))
		uses = append(uses, use{"metadata at the most",
			blocks * int64(geo.Groups()) * geo.MetaBytes, "system.max_requests"})
		pieces += uses[len(uses)-1].bytes
		if s.GPULookup() {
			uses = append(uses, use{"tables of slots at the most", blocks * int64(geo.Groups()) * 4,
				"system.max_requests"})
			pieces += uses[len(uses)-1].bytes
		}
	}
	if s.Offload.On && s.Segmented() {
		hidden := int64(l.Prompt) * int64(md.Hidden) * 2
		layer := int64(geo.Blocks(l.Prompt)*geo.KVHeads) * geo.BlockBytes
		open := int64(geo.Groups()) * geo.BlockBytes
		if s.CachesPrefixes() {
			layer *= 2
		}
		uses = append(uses, use{"buffers of the longest prefill", hidden + layer + open,
			"prefill.max_prompt_tokens"})
		pieces += uses[len(uses)-1].bytes
	}
	if slab := slabOf(&md); pieces > 0 {
		uses = append(uses, use{"left over in their slabs", (pieces+slab-1)/slab*slab - pieces, ""})
	}
	return uses, nil
}

// indexBytes returns the memory of sparse prefill of the longest request without activations.
func (c *Config) indexBytes(m cuda.Machine, longest int) (bytes int64, err error) {
	own := *c
	own.Longest = max(c.Longest, longest)
	shape, prefix := own.longestIndex()
	if shape.queries == 0 {
		return 0, nil
	}
	md, p := c.Weights.Config(), newPatterns(c.Patterns)
	needs, err := p.needs(m, &md, shape, prefix)
	for _, n := range needs {
		bytes += mem.WithSpare(n.bytes)
	}
	if !c.FindsLines {
		bytes += p.drawnBytes(own.lineTokens())
	}
	return bytes, err
}

// workspaces returns the memory of selection and decode attention of the largest batch and the
// longest context without activations.
func (c *Config) workspaces(m cuda.Machine, blocks int) (int64, error) {
	md, s := c.Weights.Config(), c.Spec
	units := int64(s.MaxRequests * md.KVHeads)
	bytes := int64(mem.StagingChunk) + c.listBytes(blocks) +
		mem.WithSpare(int64(2*(md.KVHeads*blocks+s.MaxRequests))*4)
	listed := blocks
	if s.Sparse() {
		if s.Selection.DenseLayers == 0 && !s.Progressive() {
			listed = min(blocks, sim.SelectedBlocks(s))
		}
		// scores, lists, counts, counters
		for _, n := range []int{blocks, sim.SelectedBlocks(s), 1, 1} {
			bytes += mem.WithSpare(units * int64(n) * 4)
		}
		if s.GPULookup() { // slots, and addresses of loads
			bytes += mem.WithSpare(units*int64(listed)*4) + 2*mem.WithSpare(units*int64(listed)*8)
		}
	}
	a := &cuda.DecodeArgs{
		Batch: int32(s.MaxRequests), HeadsQ: int32(md.QHeads), HeadsKV: int32(md.KVHeads),
		HeadDim: int32(md.HeadDim), BlockTokens: int32(c.Geometry.BlockTokens),
		MaxBlocks: int32(listed),
	}
	n, err := m.Workspace(a)
	if err != nil || !s.Progressive() {
		return bytes + mem.WithSpare(n), err
	}
	state, err := m.Workspace(&cuda.PSAArgs{Batch: a.Batch, HeadsQ: a.HeadsQ, HeadsKV: a.HeadsKV,
		HeadDim: a.HeadDim, BlockTokens: a.BlockTokens})
	return bytes + mem.WithSpare(n) + mem.WithSpare(state) + 2*mem.WithSpare(units*4), err
}

// listBytes returns the maximum memory of the layers' lists and loads, on the GPU and in pinned
// memory each.
func (c *Config) listBytes(blocks int) int64 {
	s := c.Spec
	if !s.Offload.On && !s.Sparse() {
		return 0
	}
	if s.Sparse() && (!s.Offload.On || s.Selection.DenseLayers == 0) && !s.Progressive() {
		blocks = min(blocks, sim.SelectedBlocks(s))
	}
	// blocks, slots and addresses of loads
	words := int64(s.MaxRequests*c.Geometry.KVHeads) * int64(2+6*sim.ListStride(blocks))
	return 4 * int64(c.Geometry.Layers) * words
}

func (c *Config) hostUses(l *Load) []use {
	s, geo := c.Spec, &c.Geometry
	longest := 0
	if len(l.Requests) > 0 {
		longest = geo.Blocks(l.Requests[0])
	}
	uses := []use{{"launch arguments", mem.StagingChunk + c.listBytes(longest),
		"system.max_requests"}}
	if s.Offload.On {
		kept := s.MaxRequests
		if s.CachesPrefixes() { // what has ended stays until its pages are taken
			kept = len(l.Requests)
		}
		pool := min(int64(s.DRAMGiB*(1<<30)), int64(l.tokens(kept))*geo.TokenBytes())
		uses = append(uses, use{"KV pool at the most", pool, "system.dram_gib"})
	}
	return uses
}

// slabOf returns the slab size of the arena for memory with the lifetime of requests.
func slabOf(md *weights.Config) int64 {
	if md.WeightBytes() < arenaSlab/16 { // a tiny model on a small machine
		return 1 << 22
	}
	return arenaSlab
}

func total(uses []use) (sum int64) {
	for _, u := range uses {
		sum += u.bytes
	}
	return sum
}

// lower returns the keys whose uses are at least as large as the missing memory, or the key of the
// largest use.
func lower(uses []use, missing int64) string {
	var keys []string
	largest := use{}
	for _, u := range uses {
		if u.key == "" || u.key == "model" {
			continue
		}
		if u.bytes > largest.bytes {
			largest = u
		}
		if u.bytes > missing {
			keys = append(keys, u.key)
		}
	}
	if len(keys) == 0 {
		return largest.key + ", or use a smaller model"
	}
	return strings.Join(keys, " or ")
}

func table(where string, uses []use, have int64) string {
	var b strings.Builder
	line := func(what string, bytes int64, key string) {
		fmt.Fprintf(&b, "  %-6s  %-32s %12s  %s\n", where, what, mem.GiB(bytes), key)
	}
	for _, u := range uses {
		line(u.what, u.bytes, u.key)
	}
	line("in all", total(uses), "")
	if have > 0 {
		line("free", have, "")
	}
	return b.String()
}
