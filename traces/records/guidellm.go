package records

import (
	"fmt"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// readGuideLLM reads the requests of all benchmarks of guidellm's benchmarks.json, by status
// (GenerativeBenchmark.requests).
func readGuideLLM(run *rows.Object) (all []sent, err error) {
	err = run.Each("benchmarks", func(b *rows.Object) error {
		const answered = "requests.successful"
		n := len(b.List(answered))
		if b.Value("requests") == nil {
			return rows.Wrong("requests", "", "missing; keep the requests in the output of guidellm")
		}
		const total = "request_totals.successful"
		of, ok := number(b, total)
		if text := b.Text(total); !ok && text != "" {
			return rows.Wrong(total, text, "want a number")
		}
		if of > float64(n) {
			return rows.Wrong(answered, "", fmt.Sprintf("has %d of %g requests; without the others the "+
				"load is another: record without sampling of requests", n, of))
		}
		for range len(b.List("requests.incomplete")) + len(b.List("requests.errored")) {
			all = append(all, sent{failed: true})
		}
		return b.Each(answered, func(r *rows.Object) error {
			s, err := guideLLM.request(r)
			all = append(all, s)
			return err
		})
	})
	return all, err
}
