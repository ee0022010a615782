package sim

// load is what a replica has yet to do, or a request's part of it. Routers read it.
type load struct {
	requests   int   // of the replica: those that have not ended
	tokens     int64 // to prefill and to emit
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

// expected is the load of a request that has not arrived.
func (s *Server) expected(t *ticket) load {
	prompt := min(t.arrival.Prompt, s.Model.MaxContext)
	return load{
		tokens:     int64(prompt) + int64(t.arrival.Output),
		workingSet: s.decodeBytes(prompt + t.generated),
	}
}

// loadOf is the load of a request: KV that is measured once it decodes.
func (s *Server) loadOf(r *request) load {
	l := load{tokens: int64(r.Target-r.Done) + int64(r.Output-r.Generated)}
	if s.cache != nil && r.seq != nil && r.Decoding() {
		l.workingSet = s.workingSet(r)
	} else {
		l.workingSet = s.decodeBytes(r.Context())
	}
	return l
}

// decodeBytes is the KV that a decode has to have in HBM: all of it without offloading.
func (s *Server) decodeBytes(context int) int64 {
	if s.hot != nil {
		return int64(min(s.Geometry.Blocks(context), s.Spec.HotBlocks())*s.Model.Layers) *
			s.layerOfBlocks()
	}
	if s.cache == nil {
		return int64(s.Geometry.Blocks(context)*s.Model.Layers) * s.layerOfBlocks()
	}
	return s.selectedBytes(context)
}

// weigh brings a replica's load up to date with a request that has changed.
func (s *Server) weigh(r *request) {
	if s.fleet == nil {
		return
	}
	s.load.remove(r.load)
	r.load = s.loadOf(r)
	s.load.add(r.load)
}
