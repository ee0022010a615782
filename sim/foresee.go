package sim

import "errors"

// foresee adds the upcoming requests to the prefix cache's Future, with the prompts that the server
// will serve.
func (s *Server) foresee() error {
	if s.future == nil {
		return nil
	}
	if s.Future == nil {
		return errors.New("sim: prefix_cache.eviction = \"belady\" needs the requests to come: " +
			"Config.Future")
	}
	for a, err := range s.Future {
		if err != nil {
			return err
		}
		prompt, limit := s.cut(&a)
		if s.reject(&a, prompt, limit) != "" {
			prompt = 0
		}
		s.future.Add(a.Content, a.Prompt, prompt)
	}
	s.future.Ready()
	return nil
}
