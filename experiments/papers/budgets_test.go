package papers

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// The other published budget, PSA's Fig. 5: at 98 % ArkVale attends to 2.1 and 2.4
// times PSA's KV in the mean over sets. Llama-3.1-8B's, which sets the group spread, is among the
// rows of TestPublishedBudgetsByGroup.
func TestProxyOfPublishedRatio(t *testing.T) {
	if testing.Short() {
		t.Skip("a study of 5 s; make test-all runs it")
	}
	if ratio := arkvaleOverPSA(t, score.Default, "lwm-7b"); math.Abs(ratio/2.1-1) > 0.2 {
		t.Errorf("LWM-7B: ArkVale attends to %.2f times PSA's KV, paper 2.1", ratio)
	}
}

// What the group spread does to the published budgets of a model whose query heads
// share KV: the more they differ, the more a budget loses, a small one most, and
// the less PSA gains. Below what is set table A.1's order is lost, where Llama3-8B
// loses more at 512 tokens than LWM-7B.
func TestPublishedBudgetsByGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("a study of 30 s; make test-all runs it")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "studies", "accuracy-proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	lwm := budgetLoss(t, score.Default, "llama2", 1)
	t.Logf("LWM-7B: loses %.2f %% at 512 tokens, %.2f %% at 2,048", 100*lwm[0], 100*lwm[1])
	var before [2]float64
	ratioBefore := math.Inf(1)
	for _, group := range []float64{0.35, 0.6, 0.7, 0.8, 0.9} {
		p := score.Default
		p.Group = group
		loss, ratio := budgetLoss(t, p, "llama3", 4), arkvaleOverPSA(t, p, "llama3.1-8b")
		row := fmt.Sprintf("\n| %g | %.2f | %.2f %% | %.2f %% |", group, ratio, 100*loss[1], 100*loss[0])
		t.Log(row)
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/studies/accuracy-proxy.md lacks the row %s", row)
		}
		if loss[0] <= before[0] || loss[1] <= before[1] || ratio >= ratioBefore {
			t.Errorf("group %g: loses %v, ratio %.3f; %v and %.3f where query heads differ less", group,
				loss, ratio, before, ratioBefore)
		}
		if group == score.Default.Group && math.Abs(ratio/2.4-1) > 0.2 {
			t.Errorf("Llama-3.1-8B: ArkVale attends to %.2f times PSA's KV, paper 2.4", ratio)
		}
		if more := loss[0] > lwm[0]; more != (group >= score.Default.Group) {
			t.Errorf("group %g: Llama3-8B loses %.4f at 512 tokens, LWM-7B %.4f", group, loss[0], lwm[0])
		}
		before, ratioBefore = loss, ratio
	}
}

// budgetLoss is what ArkVale loses of the accuracy, by the proxy, at 512 and 2,048
// tokens over SparseServe's LongBench mix, as in its table A.1.
func budgetLoss(t *testing.T, p score.Params, tokenizer string,
	queries int) (loss [2]float64) {
	t.Helper()
	scores := score.New(p, run.ScoreSeed)
	sample := attentionSample{Layers: 8, Heads: 8, digest: dsa.CuboidMean, sinks: 2, window: 2,
		tokens: 32, queries: queries, full: 2. / 32}
	prompts, err := quantilePrompts(traces.DefaultSpec().Datasets, 96, 1, tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	for i, prompt := range prompts {
		a := sample.of(scores, &p, 1, i, min(prompt, 32768))
		for j, k := range []int{16, 64} {
			loss[j] += (1 - run.AccuracyProxy(a.under(topBlocks(k)).loss)) / float64(len(prompts))
		}
	}
	return loss
}

// arkvaleOverPSA is the claim of PSA's Fig. 5, mean over sets.
func arkvaleOverPSA(t *testing.T, p score.Params, model string) (ratio float64) {
	t.Helper()
	var spec accuracySpec
	readStudy(t, "psa-fig5", &spec)
	scores := score.New(p, run.ScoreSeed)
	for _, set := range spec.Workload.Datasets {
		share := map[string]float64{} // sum over seeds
		for _, r := range spec.rivals() {
			if r.name != "vllm-sparse" && r.name != "psa" {
				continue
			}
			for _, seed := range spec.Seeds {
				requests, err := spec.requests(scores, &p, model, set, seed, &r)
				if err != nil {
					t.Fatal(err)
				}
				share[r.name] += r.least(requests, spec.Target).share
			}
		}
		ratio += share["vllm-sparse"] / share["psa"] / float64(len(spec.Workload.Datasets))
	}
	return ratio
}
