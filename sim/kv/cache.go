package kv

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// mark is the state of one block of one group. Zero is a block that is only in DRAM or does not
// exist yet. Marks and slots are separate arrays because a step reads many marks and few slots.
type mark uint32

const (
	active    mark = 1 << 31 // selected by the group's last access
	held      mark = 1 << 30 // open, unsaved, or prefix of a running prefill
	resident  mark = 1 << 29 // has an HBM slot
	stampMask mark = resident - 1
)

func (m mark) resident() bool { return m&resident != 0 }

// idle reports whether the block can be evicted.
func (m mark) idle() bool { return m&(resident|active|held) == resident }

// when returns the request's step of the last use.
func (m mark) when() uint32 { return uint32(m & stampMask) }

// Seq is the KV cache of one request. For each sampled group it has a row of marks and a row of
// slots, one entry per block.
type Seq struct {
	Request int // request number of the caller; the cache does not use it
	id      int32
	live    bool
	cap     int      // entries per row
	marks   []mark   // [groups][cap]
	slots   []uint32 // [groups][cap], of resident blocks; nil if slots have no numbers
	groups  []groupState
	words   int      // 64-bit words per row of here
	here    []uint64 // [groups][words], one resident bit per block; nil if no mark is deferred
	extent
	uses
	active   int      // entries with the active flag
	held     int      // entries with the held flag
	reserved int64    // bytes of metadata and prefill buffers, whole model
	keys     []uint64 // of the first blocks
	shared   []int32  // their entries among the blocks shared by several requests, -1 for none
}

// extent is a request's blocks in each group.
type extent struct {
	blocks int // existing blocks, including the open one
	full   int // full blocks, saved or queued for saving
	saved  int // full blocks in DRAM
	hold   int // first blocks pinned by a running chunked prefill,
	loose  int // except the first loose ones
}

// uses is when a request's blocks were used.
type uses struct {
	step     uint32   // decode steps so far, continued from the handle's last owner
	born     uint32   // step at which this owner began
	recent   []int32  // entries last used at step s, no longer active: recent[s & ring],
	again    again    // subtract these lanes
	stepAt   []uint32 // the cache's step at each decode step since born
	released uint32   // the cache's step when its prefill blocks were last released
}

// groupState is the state of a group between its accesses.
type groupState struct {
	last   uint32 // step of the last access
	seen   int32  // number of blocks at the last access
	chosen int32  // number of blocks selected at the last access
	blocks int32  // blocks that have been given slots, or saved, so far
	all    bool   // the last access selected every block
	parked bool   // its blocks were made evictable after the last access
	lost   uint32 // the request's step when it last lost a block from HBM

	past
}

// Stats counts the events of a cache, in blocks over the sampled groups. Loaded includes
// Resumed and Ahead; all other loads are misses of selections. Resumed are loads for chunked
// prefills that were suspended or adopted a prefix. Ahead are loads for iterations of
// progressive attention that were not executed. Joined are misses without a load because
// another request had the block in HBM.
type Stats struct {
	Selected, Loaded, Resumed, Ahead, Evicted, Written, Joined int64
}

// Cache holds the blocks of all live requests in one HBM pool, or in one pool per layer.
type Cache struct {
	shape
	requests
	filling
	changes
	shares    shares
	loads     []int64 // by group of the sample
	defers    bool    // marks may be deferred
	trace     *Trace
	addressed bool
}

// shape is the pools of a cache, the layers that use them, and the window of working sets.
type shape struct {
	Geo    Geometry
	Sample Sample
	pools  []pool
	poolOf []int // by group of the sample
	layers []*Layer
	window int    // decode steps whose selections form a working set
	ring   uint32 // ring size less one; the size is the power of two from window up
}

// requests is the requests of a cache.
type requests struct {
	seqs     []*Seq // by handle; nil or not live when free
	freeSeqs []int32
	reserved int64  // bytes, whole model
	held     int    // entries with the held flag
	step     uint32 // steps so far
	absent   []*Seq // requests of the last step that are not in this one
}

// filling is what waits for the Fill of the current layer, and what the last one did.
type filling struct {
	stats      Stats
	microbatch int        // blocks per iteration of progressive attention; 0 = not progressive
	missing    []queued   // blocks to load, waiting for slots
	writing    []queued   // blocks just written, waiting for slots
	rounds     []int64    // missing blocks by microbatch
	filled     []int64    // of the last Fill, by microbatch
	refs       []BlockRef // blocks that the last Fill queued for loading
	sorted     []BlockRef // scratch of sortRefs
	starts     []int
	chosen     []uint64 // scratch: blocks of a selection
	lost       []uint16 // scratch: changes of a selection whose blocks are not in HBM
}

// changes records which blocks gain and lose slots.
type changes struct {
	tables       bool       // records them
	seated, gone []BlockRef // since ForgetChanges
	goneBefore   int        // number of gone before the last Fill
}

// Config sizes a cache.
type Config struct {
	Geometry   Geometry
	Sample     Sample
	HBMBytes   int64  // for blocks, metadata and prefill buffers
	Eviction   string // of EvictionNames
	Score      Score  // of blocks, for eviction by score
	PerLayer   bool   // one pool per layer instead of one for all
	Window     int    // working-set history in decode steps, at least 1
	Addressed  bool   // slots have numbers, and Fill lists the blocks that it loads (Refs)
	Tables     bool   // when Addressed: records which blocks gain and lose slots (Changes)
	Trace      *Trace // records the selections of decodes; may be nil
	Microbatch int    // blocks per iteration of progressive attention; 0 = not progressive
}

// NewCache returns an empty cache.
func NewCache(cfg Config) (*Cache, error) {
	c := &Cache{
		shape:   shape{Geo: cfg.Geometry, Sample: cfg.Sample, window: cfg.Window},
		filling: filling{microbatch: cfg.Microbatch},
		changes: changes{tables: cfg.Tables}, trace: cfg.Trace,
		addressed: cfg.Addressed, defers: cfg.defers(),
	}
	if cfg.Window < 1 {
		return nil, fmt.Errorf("kv: working-set window is %d steps, need at least 1", cfg.Window)
	}
	c.ring = 1<<bits.Len32(uint32(cfg.Window-1)) - 1
	eviction, err := evictionNamed(&cfg)
	if err != nil {
		return nil, err
	}
	if c.trace != nil && cfg.Addressed {
		return nil, errors.New("kv: a trace of accesses cannot record an addressed cache")
	}
	c.layers = layersOf(cfg.Geometry, cfg.Sample)
	c.loads = make([]int64, len(cfg.Sample.Groups))
	n := 1
	if cfg.PerLayer {
		n = len(c.layers)
		for i := range c.layers {
			c.layers[i].pool = i
		}
	}
	c.pools, c.poolOf = make([]pool, n), make([]int, len(cfg.Sample.Groups))
	for i := range c.layers {
		for g := c.layers[i].From; g < c.layers[i].To; g++ {
			c.poolOf[g] = c.layers[i].pool
		}
	}
	for i := range c.pools {
		p := &c.pools[i]
		p.slots = poolSlots(cfg.Geometry, cfg.Sample, cfg.HBMBytes, n)
		p.first = uint32(i * p.slots)
		p.fresh = p.first
		p.numbered = cfg.Addressed
		p.order = eviction.make(i, cfg.Score)
	}
	return c, nil
}

// poolSlots returns the slots per pool if the given number of pools share the HBM.
func poolSlots(geo Geometry, sample Sample, hbmBytes int64, pools int) int {
	return int(float64(hbmBytes/geo.BlockBytes) * sample.Rate / float64(pools))
}

// Open returns the handle of a new request that will grow to at most maxTokens tokens. It
// allocates nothing in HBM.
func (c *Cache) Open(maxTokens int) *Seq {
	var s *Seq
	if n := len(c.freeSeqs); n > 0 {
		s = c.seqs[c.freeSeqs[n-1]]
		c.freeSeqs = c.freeSeqs[:n-1]
	} else {
		s = &Seq{id: int32(len(c.seqs)), uses: uses{step: uint32(c.window)}}
		c.seqs = append(c.seqs, s)
		s.groups = make([]groupState, len(c.Sample.Groups))
		s.recent = make([]int32, c.ring+1)
	}
	s.cap = c.Geo.Blocks(maxTokens)
	if need := s.cap * len(s.groups); cap(s.marks) < need {
		s.marks = make([]mark, need)
		if c.addressed {
			s.slots = make([]uint32, need)
		}
	} else {
		s.marks = s.marks[:need]
		if c.addressed {
			s.slots = s.slots[:need]
		}
		clear(s.marks)
	}
	if c.defers {
		s.words = (s.cap + 63) / 64
		s.here = slices.Grow(s.here[:0], s.words*len(s.groups))[:s.words*len(s.groups)]
		clear(s.here)
	}
	clear(s.groups)
	clear(s.recent)
	s.again = again{}
	s.stepAt = s.stepAt[:0]
	s.blocks, s.full, s.saved, s.hold, s.loose, s.active, s.held = 0, 0, 0, 0, 0, 0, 0
	s.step += 2 // born-1 marks blocks that no step of this owner selected
	s.born = s.step
	s.live, s.Request = true, 0
	return s
}

// Free releases all blocks and reservations of a request.
func (c *Cache) Free(s *Seq) {
	if c.trace != nil {
		c.trace.free(s)
	}
	for _, l := range c.layers {
		p := &c.pools[l.pool]
		for g := l.From; g < l.To; g++ {
			if s.here != nil && s.hold == 0 && len(s.keys) == 0 {
				n, idle := s.count(g)
				p.used, p.idle = p.used-n, p.idle-idle
				continue
			}
			s.sync(g)
			for b, m := range s.row(g)[:s.blocks] {
				if m.resident() && c.shares.unref(s, g, b) {
					p.release(s.slot(g*s.cap + b))
				}
				if m.idle() {
					p.idle--
				}
			}
		}
	}
	c.shares.unname(s)
	c.reserved, s.reserved = c.reserved-s.reserved, 0 // cannot fail: it shrinks
	c.reserve()
	c.forgetChanges(s)
	c.held -= s.held
	s.blocks, s.full, s.saved, s.hold, s.loose, s.active, s.held = 0, 0, 0, 0, 0, 0, 0
	s.live = false
	c.freeSeqs = append(c.freeSeqs, s.id)
	for i, l := range c.absent {
		if l == s {
			c.absent = append(c.absent[:i], c.absent[i+1:]...)
			break
		}
	}
}

func (s *Seq) row(g int) []mark { return s.marks[g*s.cap : (g+1)*s.cap : (g+1)*s.cap] }

// Handle identifies the request while it lives. A later request may reuse the handle.
func (s *Seq) Handle() int32 { return s.id }

// Slots returns the HBM slots of all blocks of a sampled group. Entries of blocks that are not
// resident are undefined. The cache must be Addressed.
func (s *Seq) Slots(g int) []uint32 { return s.slots[g*s.cap:][:s.blocks] }

// Owner distinguishes successive requests with the same handle.
func (s *Seq) Owner() uint32 { return s.born }

// Seen returns the number of the request's decode steps and its number of blocks at its last
// selection for a sampled group. Both are 0 before the first selection.
func (s *Seq) Seen(g int) (steps, blocks int) {
	gs := &s.groups[g]
	if gs.last <= s.born {
		return 0, 0
	}
	return int(gs.last - s.born), int(gs.seen)
}

// Blocks returns the number of blocks in each group, including the open one.
func (s *Seq) Blocks() int { return s.blocks }

// at returns the mark of a ref's block, or nil if its request was freed.
func (c *requests) at(r ref) *mark {
	s := c.seqs[r.seq]
	if !s.live || int(r.block) >= s.blocks {
		return nil
	}
	return &s.marks[int(r.group)*s.cap+int(r.block)]
}

// Layers returns the layers with sampled groups, in order. These are all layers if every group
// is simulated.
func (c *shape) Layers() []*Layer { return c.layers }

// Stats returns the counts so far.
func (c *filling) Stats() Stats { return c.stats }

// LoadError returns the relative standard error of loaded blocks due to sampling, estimated
// from the spread over sampled groups. It is 0 if every group is simulated or nothing was
// loaded.
func (c *Cache) LoadError() float64 {
	n := float64(len(c.loads))
	if c.Sample.Rate == 1 || n < 2 || c.stats.Loaded == 0 {
		return 0
	}
	mean, squares := float64(c.stats.Loaded)/n, 0.0
	for _, x := range c.loads {
		squares += (float64(x) - mean) * (float64(x) - mean)
	}
	return math.Sqrt(squares/(n-1)/n*(1-c.Sample.Rate)) / mean
}

// WorkingSet returns the bytes of the blocks that a request selected in the last window decode
// steps, scaled to the whole model. It is 0 before the first step.
func (c *shape) WorkingSet(s *Seq) int64 {
	s.settleAgain(c)
	n := int64(s.active)
	for _, r := range s.recent {
		n += int64(r)
	}
	return c.Scale(n) * c.Geo.BlockBytes
}

// Bytes returns the HBM capacity for blocks, metadata and prefill buffers, and the bytes
// reserved for metadata and buffers, for the whole model.
func (c *Cache) Bytes() (total, reserved int64) {
	for i := range c.pools {
		total += int64(c.pools[i].slots)
	}
	return c.Scale(total) * c.Geo.BlockBytes, c.reserved
}

// Scale converts a count over the sample to the whole model.
func (c *shape) Scale(n int64) int64 {
	if c.Sample.Rate == 1 {
		return n
	}
	return int64(float64(n)/c.Sample.Rate + 0.5)
}
