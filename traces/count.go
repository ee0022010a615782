package traces

// Count returns how many requests the specs ask for in all, for a progress bar. A trace that is
// served whole is read once to count its rows; 0 where it cannot be read.
func Count(specs ...Spec) int {
	n, rows := 0, map[string]int{}
	for _, s := range specs {
		if s.Requests > 0 || s.Trace == BuiltIn {
			n += s.Requests
			continue
		}
		if _, ok := rows[s.Trace]; !ok {
			rows[s.Trace] = countRows(s)
		}
		n += rows[s.Trace]
	}
	return n
}

func countRows(s Spec) int {
	if rereadable(s.Trace) != nil {
		return 0
	}
	src, _, err := openPath(s.Trace, wholeFile(s.Format))
	if err != nil {
		return 0
	}
	defer src.Close()
	return src.rest()
}
