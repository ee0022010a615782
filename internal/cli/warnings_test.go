package cli

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
)

// Warnings of the same kind share a line whatever their numbers; those of one trace
// file are of different kinds.
func TestWarningsShareLines(t *testing.T) {
	sums := []sim.Summary{
		{Name: "a", System: "vllm", Rate: 1, Warnings: []warn.Warning{
			{Kind: warn.Rejected, Text: "12 of 300 requests rejected: KV of 1000 tokens exceeds HBM"},
			{Kind: warn.RowsLeft, Text: "3 rows left out beyond workload.requests = 300: t.csv"}}},
		{Name: "b", System: "sparseserve", Rate: 1, Warnings: []warn.Warning{
			{Kind: warn.Truncated, Text: "4 of 300 prompts truncated to 9000 tokens (longest 10000)"},
			{Kind: warn.Rejected, Text: "1 of 300 requests rejected: prompt of 9 tokens"},
			{Kind: warn.RowsLeft, Text: "3 rows left out beyond workload.requests = 300: t.csv"},
			{Kind: warn.RowsLeft, Subject: "failed",
				Text: "2 rows left out that no service answered (0 prompt or output tokens): t.csv"}}},
	}
	var out strings.Builder
	printWarnings(&out, nil, sums, "")
	want := `
Warnings:
  12 of 300 requests rejected: KV of 1000 tokens exceeds HBM (and 1 more like it)
    all runs
  4 of 300 prompts truncated to 9000 tokens (longest 10000)
    sparseserve at 1
  3 rows left out beyond workload.requests = 300: t.csv
    all runs
  2 rows left out that no service answered (0 prompt or output tokens): t.csv
    sparseserve at 1
`
	if out.String() != want {
		t.Errorf("printed%s", out.String())
	}
}

// Warnings about requests and the queue are above those about the cost model, the gravest first.
func TestSeriousWarningsFirst(t *testing.T) {
	sums := []sim.Summary{{Name: "a", System: "vllm", Rate: 1, Warnings: []warn.Warning{
		{Kind: warn.HeadsSampled, Text: "heads sampled: 16 of 1024 groups"},
		{Kind: warn.Assumed, Text: "linears: more tokens than measured"},
		{Kind: warn.FewRequests, Text: "only 20 requests finished; noisy"},
		{Kind: warn.Truncated, Text: "4 of 300 prompts truncated to 9000 tokens"},
		{Kind: warn.UnstableQueue, Text: "unstable queue: grows"},
		{Kind: warn.Rejected, Text: "12 of 300 requests rejected: KV"}}}}
	var out strings.Builder
	printWarnings(&out, nil, sums, "")
	last := 0
	for _, part := range []string{"rejected", "unstable", "truncated", "only 20", "heads sampled",
		"linears"} {
		at := strings.Index(out.String(), part)
		if at < last {
			t.Errorf("%q is not below what is more serious:\n%s", part, out.String())
		}
		last = at
	}
}
