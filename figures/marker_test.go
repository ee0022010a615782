package figures

import (
	"fmt"
	"testing"
)

// However many series there are, no two look alike: neither as lines nor as bars. A system of the
// paper has its look wherever it stands.
func TestLooksDiffer(t *testing.T) {
	series := []string{"other", "vLLM", "SparseServe"}
	for i := range 30 {
		series = append(series, fmt.Sprint("line ", i))
	}
	all := lookOf(series, nil)
	lines, bars := map[string]string{}, map[string]string{}
	for _, s := range series {
		l := all[s]
		for kind, key := range map[*map[string]string]string{
			&lines: fmt.Sprint(l.color, l.dashes), &bars: fmt.Sprint(l.color, l.hatching)} {
			if before, ok := (*kind)[key]; ok {
				t.Errorf("%s and %s are both %s", before, s, key)
			}
			(*kind)[key] = s
		}
	}
	if got := fmt.Sprint(all["vLLM"].color); got != fmt.Sprint(looks()[0].color) {
		t.Errorf("vLLM is %s", got)
	}
}
