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
		workingSet: s.memory.decodeBytes(prompt + t.generated),
	}
}

// loadOf returns the load of a request. Its working set is measured once it decodes.
func (s *Server) loadOf(r *request) load {
	return load{tokens: int64(r.Target-r.Done) + int64(r.Output-r.Generated),
		workingSet: s.memory.workingSet(r)}
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
