package records

import (
	"fmt"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// readGuideLLM reads the requests of all benchmarks of guidellm's benchmarks.json, by status
// (GenerativeBenchmark.requests).
func readGuideLLM(run *rows.Object) (all []sent, err error) {
	benchmarks, err := run.Objects("benchmarks")
	for i, b := range benchmarks {
		where := fmt.Sprintf("benchmarks[%d]", i)
		if b.Value("requests") == nil {
			return nil, rows.Wrong(where+".requests", "", "missing; keep the requests in the output of "+
				"guidellm")
		}
		done, err := b.Objects("requests.successful")
		if err != nil {
			return nil, rows.Under(where, err)
		}
		if n, _ := number(b, "request_totals.successful"); n > float64(len(done)) {
			return nil, rows.Wrong(where+".requests.successful", "",
				fmt.Sprintf("has %d of %g requests; without the others the load is another: record without "+
					"sampling of requests", len(done), n))
		}
		for range len(b.List("requests.incomplete")) + len(b.List("requests.errored")) {
			all = append(all, sent{failed: true})
		}
		for j, r := range done {
			s, err := guideLLM.request(r)
			if err != nil {
				return nil, rows.Under(fmt.Sprintf("%s.requests.successful[%d]", where, j), err)
			}
			all = append(all, s)
		}
	}
	return all, err
}
