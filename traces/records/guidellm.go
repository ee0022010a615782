package records

import (
	"encoding/json"
	"fmt"

	"github.com/sparseserve/sparseserve/traces/rows"
)

// readGuideLLM reads the requests of all benchmarks of guidellm's benchmarks.json, by status
// (GenerativeBenchmark.requests).
func readGuideLLM(text []byte) ([]sent, error) {
	var v struct {
		Benchmarks []struct {
			Requests *struct {
				Successful []json.RawMessage `json:"successful"`
				Incomplete []json.RawMessage `json:"incomplete"`
				Errored    []json.RawMessage `json:"errored"`
			} `json:"requests"`
			Totals *struct {
				Successful int `json:"successful"`
			} `json:"request_totals"`
		} `json:"benchmarks"`
	}
	if err := rows.Decode(text, &v); err != nil {
		return nil, err
	}
	var all []sent
	for i, b := range v.Benchmarks {
		where := fmt.Sprintf("benchmarks[%d].requests", i)
		if b.Requests == nil {
			return nil, rows.Wrong(where, "", "missing; keep the requests in the output of guidellm")
		}
		done := b.Requests.Successful
		if b.Totals != nil && b.Totals.Successful > len(done) {
			return nil, rows.Wrong(where+".successful", "",
				fmt.Sprintf("has %d of %d requests; without the others the load is another: record without "+
					"sampling of requests", len(done), b.Totals.Successful))
		}
		for range len(b.Requests.Incomplete) + len(b.Requests.Errored) {
			all = append(all, sent{failed: true})
		}
		for j, raw := range done {
			rec, err := rows.NewObject(raw)
			var s sent
			if err == nil {
				s, err = guideLLM.request(rec)
			}
			if err != nil {
				return nil, rows.Under(fmt.Sprintf("%s.successful[%d]", where, j), err)
			}
			all = append(all, s)
		}
	}
	return all, nil
}
