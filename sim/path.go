package sim

import "github.com/sparseserve/sparseserve/sim/kv"

// path accesses the cache for the decodes of a step. A modelled device needs counts (counted). A
// device that computes also gets the addresses of rows, blocks and slots (addressed, which wraps
// the device).
type path interface {
	// access applies the decodes' selections in a layer and fills the cache. It returns the number of
	// blocks to load over the sampled groups.
	access(l *kv.Layer, dense bool) (loads int64, err error)
	// drop records that a request releases its KV.
	drop(r *request, finished bool)
	dropped() []Dropped
}

// counted is the path to a modelled device.
type counted struct {
	st    *stepState
	sel   *selection
	cache *kv.Cache // nil without a cache over DRAM
}

// newPath returns the path to the server's device. cache is nil without a cache over DRAM.
func newPath(s *Server, cache *kv.Cache) path {
	p := counted{&s.step, s.sel, cache}
	if s.Addressed {
		a := &addressed{counted: p, Device: s.Device, cfg: &s.Config, requests: s.requests}
		s.Device = a
		return a
	}
	s.repeater, _ = s.Device.(Repeater)
	return p
}

func (p counted) drop(*request, bool) {}
func (p counted) dropped() []Dropped  { return nil }

func (p counted) access(l *kv.Layer, dense bool) (int64, error) {
	sel := &p.st.sel
	*sel = kv.Selection{}
	for _, r := range p.st.decodes {
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
