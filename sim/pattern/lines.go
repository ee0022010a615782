package pattern

// A vertical-slash head's lines where the columns that Kept assumes need them. Slash lines come in
// runs: one of spread lines costs a row of queries a block more than its whole blocks, so that runs
// of 65 make 1.97 columns a line and, with a long one among 13, 1.9. A run begins a block past the
// one before, and the lines nearest to the query make the first: every row that is long enough sees
// all of them.
const (
	runLines    = BlockTokens + 1
	runColumns  = 2 * BlockTokens
	longRun     = 12 // every 13th
	columnsStep = 4  // between vertical lines, from the first key on
)

// Lines returns the vertical lines (keys) and the slash lines (distances) of a vertical-slash head
// as its cost assumes them, ascending and within so many tokens: for devices that compute on
// made-up weights, whose own lines are anywhere.
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
