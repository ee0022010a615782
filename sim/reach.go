package sim

// Reach is how near a run came to the limits of its servers. One that never came to a limit is, to
// the last event, the run of servers with any other that it stays below.
type Reach struct {
	Requests int   // most that one server ran at a time
	HBM      int64 // bytes for KV that would have been enough, at most those there are
	// Short says that more HBM could have made another run: room was refused, a request was rejected,
	// blocks left HBM for others, or what a cache keeps depends on its size.
	Short bool
}

func (s *Server) reach() Reach {
	r := Reach{Requests: s.sched.Most(), HBM: s.HBMBytes, Short: s.sched.Limited() ||
		s.metrics.refused > 0 || s.hot != nil}
	b, ok := s.memory.(interface{ Enough() (int64, bool) })
	if !ok || s.prefixes != nil && (s.content || s.metrics.preemptions > 0) {
		r.Short = true // what the prefix cache finds depends on its size
		return r
	}
	blocks, enough := b.Enough()
	if !enough || s.cache != nil && s.cache.Stats().Evicted > 0 {
		r.Short = true
	}
	if !s.Spec.Offload.On { // else they are of DRAM
		r.HBM = min(r.HBM, blocks*s.memoryBlock)
	}
	return r
}

// reach is the furthest of all replicas. One that failed has taken with it how far it came.
func (f *Fleet) reach() (r Reach) {
	for _, s := range f.servers {
		if s == nil {
			return Reach{Short: true}
		}
		one := s.reach()
		r.Requests, r.HBM = max(r.Requests, one.Requests), max(r.HBM, one.HBM)
		r.Short = r.Short || one.Short
	}
	return r
}
