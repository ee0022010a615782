package papers

import "slices"

// Null judges a model in which no mechanism of a paper has an effect. All systems of a comparison
// have one curve, so a ratio is 1; nothing is gained, skipped or waited for, so a share and a gain
// are 0. A bandwidth is that of one memcpy a block, and seconds on eight cards are an eighth of
// dense attention's on one, both from the results in dir.
func Null(claims []Claim, dir string) ([]Outcome, error) {
	r := newResults(dir)
	return judge(claims, func(v *Outcome, m measurement) (err error) {
		ours := 0.0
		switch {
		case m.plain != nil:
			ours, err = m.plain(r)
		case slices.Contains([]string{"ratio", "speedup"}, v.Kind):
			ours = 1
		}
		v.settle(ours, ours, ours)
		return err
	})
}

// NullExperiments names the experiments that Null reads.
func NullExperiments(claims []Claim) []string {
	return experimentsOf(claims, func(m measurement) bool { return m.plain != nil })
}
