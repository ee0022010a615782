package traces

// Count returns the total number of requests of the specs, for a progress bar. For stages that end
// the run, and for whole sessions, it is the mean. A trace without a limit is read once to count
// its rows; 0 if it cannot be read.
func Count(specs ...Spec) int {
	n, rows := 0, map[string]int{}
	for _, s := range specs {
		staged, _ := s.Expected()
		switch {
		case s.Requests > 0:
			n += s.Requests
		case s.Sessions > 0:
			n += s.Sessions * s.meanTurns()
		case !s.FromFile():
			n += int(staged)
		default:
			all, ok := rows[s.Trace]
			if !ok {
				if src, _, err := openTrace(s.Trace, wholeFile(s.Format)); err == nil {
					all, _ = src.rest() // the run reports errors in the file
					src.Close()
				}
				rows[s.Trace] = all
			}
			if len(s.Stages) > 0 {
				all = min(all, int(staged))
			}
			n += all
		}
	}
	return n
}

// meanTurns returns the mean turns per session, from equally spaced quantiles; 1 if Turns is not a
// valid distribution.
func (s Spec) meanTurns() int {
	turns, err := ParseLengths("sessions.turns", s.Turns)
	if err != nil {
		return 1
	}
	const points = 100
	sum := 0
	for i := range points {
		sum += turns.Quantile((float64(i) + 0.5) / points)
	}
	return (sum + points/2) / points
}
