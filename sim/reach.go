package sim

// Reach records how close a run came to the limits of its servers. If a run stayed below a limit,
// any other limit above its use gives exactly the same run.
type Reach struct {
	Requests int   // most concurrent requests of one server
	HBM      int64 // KV bytes that would have sufficed, at most the configured HBM
	// Short reports that more HBM could have changed the run: an allocation was refused, a request
	// was rejected, blocks were evicted from HBM, or a cache's content depends on its size.
	Short bool
}

func (s *Server) reach() Reach {
	r := Reach{Requests: s.sched.Most(), HBM: s.HBMBytes,
		Short: s.sched.Limited() || s.metrics.refused > 0}
	if s.prefixes.open() || s.Spec.CachesPrefixes() && s.metrics.preemptions > 0 {
		r.Short = true // prefix hits depend on the cache size
		return r
	}
	s.memory.reach(&r)
	return r
}

// reach returns the maximum over all replicas. The reach of a failed replica is lost, so Short is
// set.
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
