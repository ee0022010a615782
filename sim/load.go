package sim

// load is the remaining work of a replica or of a request. Routers read it.
type load struct {
	requests   int   // unfinished requests; only for a replica
	tokens     int64 // tokens to prefill and to emit
	workingSet int64 // bytes of KV
}

func (l *load) add(o load) {
	l.tokens += o.tokens
	l.workingSet += o.workingSet
}

func (l *load) remove(o load) {
	l.tokens -= o.tokens
	l.workingSet -= o.workingSet
}

// expected returns the load of a request that has not arrived yet.
func (s *Server) expected(t *ticket) load {
	prompt := min(t.arrival.Prompt, s.Model.MaxContext)
	return load{
		tokens:     int64(prompt) + int64(t.arrival.Output),
		workingSet: s.decodeBytes(prompt + t.generated),
	}
}

// loadOf returns the load of a request. Its working set is measured once it decodes.
func (s *Server) loadOf(r *request) load {
	l := load{tokens: int64(r.Target-r.Done) + int64(r.Output-r.Generated)}
	if s.cache != nil && r.seq != nil && r.Decoding() {
		l.workingSet = s.workingSet(r)
	} else {
		l.workingSet = s.decodeBytes(r.Context())
	}
	return l
}

// decodeBytes returns the KV in bytes that a decode needs in HBM: all of it without offloading.
func (s *Server) decodeBytes(context int) int64 {
	if s.hot != nil {
		return int64(min(s.Geometry.Blocks(context), s.Spec.HotBlocks())*s.Model.Layers) *
			s.layerOfBlocks()
	}
	if s.cache == nil {
		return int64(s.Geometry.Blocks(context)*s.Model.Layers) * s.layerOfBlocks()
	}
	return s.sel.bytes(context)
}

// weigh updates a replica's load after a request has changed.
func (s *Server) weigh(r *request) {
	if s.fleet == nil {
		return
	}
	s.load.remove(r.load)
	r.load = s.loadOf(r)
	s.load.add(r.load)
}
