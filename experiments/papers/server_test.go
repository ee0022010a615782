package papers

import (
	"fmt"
	"math"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/dsa"
	"github.com/sparseserve/sparseserve/sim/score"
)

// Study and server are one process: at one threshold the requests of a set hold as
// much of their attention, attend to as much KV, and keep as much accuracy by the
// proxy where they are served as where they are looked at one step each. The
// study's heads are at even quantiles, the server's are drawn.
func TestServerHoldsWhatTheStudyDoes(t *testing.T) {
	if testing.Short() {
		t.Skip("a study of 15 s; make test-all runs it")
	}
	var spec accuracySpec
	readStudy(t, "psa-fig5", &spec)
	spec.Workload.Requests = 8
	const epsilon = 0.75
	params := score.Default
	scores := score.New(params, run.ScoreSeed)
	for _, c := range [][2]string{{"lwm-7b", "layer"}, {"lwm-7b", sim.PSAStopHead},
		{"llama3.1-8b", "layer"}} {
		model, stop := c[0], c[1]
		r := rival{digest: dsa.CuboidMean, window: 1, tokens: 32}
		requests, err := spec.requests(scores, &params, model, "qasper", 1, &r)
		if err != nil {
			t.Fatal(err)
		}
		r.at = func(x float64) selector {
			return progressive(dsa.PSA{Epsilon: x, Microbatch: spec.Microbatch}, stop == sim.PSAStopHead)
		}
		want := r.usage(requests, epsilon)
		c := mustLoad(t, "", "model="+model, "system.preset=vllm-psa", "selection.stop="+stop,
			"output.recall_proxy=true", "longbench.datasets=[\"qasper\"]",
			"workload.requests=16", "workload.rate=[0.2]", "workload.output_scale=0.1",
			fmt.Sprintf("selection.microbatch=%d", spec.Microbatch), fmt.Sprintf("selection.epsilon=%g",
				epsilon))
		sum, err := run.NewSimulator().Run(t.Context(), c[0], run.Sink{})
		if err != nil {
			t.Fatal(err)
		}
		if !warn.Has(sum.Warnings, warn.AccuracyProxy) {
			t.Errorf("nothing says that the proxy is one: %q", sum.Warnings)
		}
		got := sum.RecallProxy
		t.Logf("%s, selection.stop %s: served, %.4f of the attention is held and the proxy %.4f; in the "+
			"study %.4f and %.4f", model, stop, got.RequestMean, got.Accuracy, want.recall, want.accuracy)
		if math.Abs(got.RequestMean-want.recall) > 0.02 || math.Abs(got.Accuracy-want.accuracy) > 0.01 {
			t.Errorf("%s, selection.stop %s: server %+v, study %+v", model, stop, got, want)
		}
	}
}
