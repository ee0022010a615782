package pattern

// Layout of a vertical-slash head's lines that needs the columns that Kept assumes.
// Slash lines come in runs. A run of adjacent lines costs a row of queries one block more than
// its whole blocks. Therefore runs of 65 lines have 1.97 columns per line, and 1.9 with one
// long run in 13. A run begins one block after the end of the run before. The lines nearest to
// the query form the first run, so every sufficiently long row has all lines.
const (
	runLines    = BlockTokens + 1
	runColumns  = 2 * BlockTokens
	longRun     = 12 // every 13th run is long
	columnsStep = 4  // distance of vertical lines, from the first key on
)

// Lines returns the vertical lines (keys) and the slash lines (distances) of a vertical-slash
// head, ascending and less than tokens. They are positioned as the head's cost assumes, for
// devices that compute on random weights, whose real lines would be arbitrary.
func (h Head) Lines(tokens int) (vertical, slash []int32) {
	for i := 0; i < h.A && columnsStep*i < tokens; i++ {
		vertical = append(vertical, int32(columnsStep*i))
	}
	at := 0
	for run := 0; len(slash) < h.B && at < tokens; run++ {
		lines, columns := runLines, runColumns
		if run%(longRun+1) == longRun {
			lines, columns = lines+BlockTokens, columns+BlockTokens
		}
		for i := range min(lines, h.B-len(slash)) {
			slash = append(slash, int32(at+i))
		}
		at += columns
	}
	return vertical, slash
}
