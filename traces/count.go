package traces

// Count returns how many requests the specs ask for in all, for a progress bar. Of a trace that
// is served whole these are its rows, which it reads once; 0 where they cannot be read.
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
