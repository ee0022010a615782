package sim

import (
	"errors"
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/memory"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/sched"
)

// residency decides where the KV of requests is and what moves. A server has one: resident, with
// all KV in HBM; tiered, where HBM is a cache over DRAM; or buffered, with a buffer a request.
type residency interface {
	memory.Memory
	// refuse returns why a request that runs alone does not fit, or "". The first hit tokens of its
	// prompt are cached.
	refuse(prompt, output, hit int) string
	// begin brings the step's batch in.
	begin() error
	// open writes what the prefills of a layer compute. It does not depend on the selections of the
	// layer's decodes, so a device that computes can run it during the previous layer.
	open(layer int)
	// move makes the device load what a layer's decodes lack and save what the layer fills.
	move(layer int) error
	// end records what the step moved. The step began at now.
	end(now des.Time)
	// prefilled passes the KV of a completed prefill on to decodes.
	prefilled(*request) error
	// drop frees the KV of a preempted or ended request.
	drop(*request)
	// saved marks the saves of all steps up to the given one as done. drain asks the device for saves
	// that no step has reported.
	saved(step int64) error
	drain(now des.Time) error
	// hbmUsed returns the bytes of KV blocks, metadata and prefill buffers in HBM.
	hbmUsed() int64
	// decodeBytes returns the KV in bytes that a decode needs in HBM. workingSet is the same for a
	// request, as measured where it decodes.
	decodeBytes(context int) int64
	workingSet(*request) int64
	// sampled adds the error due to sampling heads.
	sampled(*metrics.Run)
	// check verifies laws 1 to 3 between events, checkBatch law 8 when a step begins.
	check() error
	checkBatch() error
}

// newResidency sets up the server's memory. It returns the limit of a batch, nil for none.
func (s *Server) newResidency() (sched.Limit, error) {
	spec := &s.Spec
	if s.Model.WindowLayers > 0 && (spec.Offload.On || spec.Sparse()) {
		return nil, errors.New("sim: a model with windows has no offloading or selection")
	}
	if spec.KeepsContexts() {
		s.Model.WindowLayers = 0
	}
	m := resident{Config: &s.Config, st: &s.step, sel: s.sel, block: s.memoryBlock(),
		requests: s.requests, schedule: s.schedule}
	capacity := s.HBMBytes
	if spec.Offload.On {
		capacity = int64(spec.DRAMGiB * (1 << 30))
		if ratio := spec.Offload.HostPoolRatio; spec.Hot() && ratio > 0 {
			capacity = min(capacity, int64(ratio*float64(s.HBMBytes)))
		}
	}
	s.prefixes = &prefixes{Config: &s.Config, schedule: s.schedule, landing: map[int]*request{}}
	var err error
	if m.Memory, err = s.newMemory(capacity / m.block); err != nil {
		return nil, err
	}
	s.prefixes.memory = m.Memory
	if spec.CachesPrefixes() {
		m.pool, _ = m.Memory.(*memory.Pool)
	}
	switch {
	case spec.Hot():
		s.memory, err = newBuffered(m)
	case spec.Offload.On:
		var t *tiered
		if t, err = newTiered(m); err != nil {
			return nil, err
		}
		t.path = newPath(s, t.cache)
		s.memory, s.path = t, t.path
		return hbmLimit{t}, nil
	default:
		s.memory = &m
	}
	s.path = newPath(s, nil)
	return nil, err
}

// memoryBlock returns the bytes of one block of memory, which counts blocks of all layers, or of
// one layer where layers differ.
func (c *Config) memoryBlock() int64 {
	block := c.Geometry.BlockBytes
	switch {
	case c.Model.WindowLayers > 0:
		return c.layerOfBlocks() * int64(c.layersOfBlock())
	case c.Spec.Sparse() && !c.Spec.Offload.On, c.Spec.Hot() && c.Spec.CachesPrefixes():
		block += c.Geometry.MetaBytes
	}
	return block * int64(c.Geometry.Groups())
}

// layerOfBlocks returns the size in bytes of one block of every KV head in a layer.
func (c *Config) layerOfBlocks() int64 {
	return int64(c.Geometry.KVHeads) * c.Geometry.BlockBytes
}

// resident is memory with all KV in HBM: nothing moves.
type resident struct {
	*Config
	memory.Memory
	st       *stepState
	sel      *selection
	pool     *memory.Pool // memory as a pool of shared blocks; nil otherwise
	block    int64        // bytes of one block of memory
	requests map[*sched.Request]*request
	schedule func(at des.Time, kind eventKind, n int64)
}

func (m *resident) refuse(int, int, int) string { return "" }
func (m *resident) begin() error                { return nil }
func (m *resident) open(int)                    {}
func (m *resident) move(int) error              { return nil }
func (m *resident) end(des.Time)                {}
func (m *resident) prefilled(*request) error    { return nil }
func (m *resident) drop(*request)               {}
func (m *resident) saved(int64) error           { return nil }
func (m *resident) drain(des.Time) error        { return nil }
func (m *resident) sampled(*metrics.Run)        {}
func (m *resident) checkBatch() error           { return nil }
func (m *resident) hbmUsed() int64              { return m.Used() * m.block }
func (m *resident) workingSet(r *request) int64 { return m.decodeBytes(r.Context()) }

func (m *resident) decodeBytes(context int) int64 {
	return int64(m.Geometry.Blocks(context)*m.Model.Layers) * m.layerOfBlocks()
}

func (m *resident) check() error {
	if err := m.Check(m.grants); err != nil {
		return fmt.Errorf("laws 1 and 2: %w", err)
	}
	return nil
}

// grants yields the grants of all requests.
func (m *resident) grants(yield func(*memory.Grant) bool) {
	for r := range m.requests {
		if !yield(r.Grant) {
			return
		}
	}
}
