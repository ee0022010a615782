package sim

import "github.com/sparseserve/sparseserve/sim/kv"

// path connects a step's layers to the cache and the device. A modelled device gets counts
// (counted). A device that computes also gets the addresses of rows, blocks and slots (addressed,
// which wraps counted).
type path interface {
	begin(*Step) error
	score(layer int, w *Work) error
	// access applies the decodes' selections in a layer and fills the cache. It returns the number of
	// blocks to load over the sampled groups.
	access(l *kv.Layer, dense bool) (loads int64, err error)
	move(*kv.Moves) error
	compute(layer int, dense bool, w *Work) error
	// drop records that a request releases its KV.
	drop(r *request, finished bool)
	dropped() []Dropped
}

// counted is the path to a modelled device.
type counted struct {
	*Server
	cache *kv.Cache // nil without a cache over DRAM
}

// newPath returns the path to the server's device. cache is nil without a cache over DRAM.
func newPath(s *Server, cache *kv.Cache) path {
	if s.Addressed {
		return &addressed{counted: counted{s, cache}}
	}
	s.repeater, _ = s.Device.(Repeater)
	return counted{s, cache}
}

func (p counted) begin(m *Step) error                      { return p.Device.Begin(m) }
func (p counted) score(layer int, w *Work) error           { return p.Device.Score(layer, w) }
func (p counted) move(m *kv.Moves) error                   { return p.Device.Move(m) }
func (p counted) compute(layer int, _ bool, w *Work) error { return p.Device.Compute(layer, w) }
func (p counted) drop(*request, bool)                      {}
func (p counted) dropped() []Dropped                       { return nil }

func (p counted) access(l *kv.Layer, dense bool) (int64, error) {
	sel := &p.step.sel
	*sel = kv.Selection{}
	for _, r := range p.step.decodes {
		for g := l.From; g < l.To; g++ {
			p.sel.of(r, g, dense, sel)
			p.cache.Access(r.seq, g, sel)
		}
	}
	return p.cache.Fill(l)
}

// Dropped returns the requests that released their KV since the last step. A device receives them
// with the next Begin. After the last step there is none.
func (s *Server) Dropped() []Dropped { return s.path.dropped() }
