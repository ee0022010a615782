package figures

// thinned keeps all values while they are few, then every second, fourth and so on, so that memory
// does not grow with the requests of a run.
type thinned[T any] struct {
	values []T
	most   int // values that are kept
	stride int // 2^stride values for one that is kept
	seen   int
}

// sampled returns an empty series that keeps at most a number of values, which is even.
func sampled[T any](most int) *thinned[T] { return &thinned[T]{most: most} }

func (s *thinned[T]) add(v T) {
	if s.seen&(1<<s.stride-1) == 0 {
		if len(s.values) == s.most {
			for i := range s.most / 2 {
				s.values[i] = s.values[2*i]
			}
			s.values, s.stride = s.values[:s.most/2], s.stride+1
		}
		if s.seen&(1<<s.stride-1) == 0 {
			s.values = append(s.values, v)
		}
	}
	s.seen++
}
