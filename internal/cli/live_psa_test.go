package cli

import (
	"encoding/csv"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// PSA's systems run live to the end: the device counts the same rounds and unused loads as the
// server, and steps.csv has them.
func TestLivePSA(t *testing.T) {
	for _, stop := range []string{"layer", sim.PSAStopHead} {
		t.Run(stop, func(t *testing.T) { livePSA(t, stop) })
	}
}

func livePSA(t *testing.T, stop string) {
	args := tinyLive(t, "--live=reference", "--json", "--out", "out", "--set", `system.preset=["vllm-psa","sparseserve-psa"]`, "--set", "selection.microbatch=2",
		"--set", "selection.epsilon=0.8", "--set", "selection.stop="+stop, "--set", "output.steps=true")
	t.Chdir(t.TempDir())
	status, out, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
	var all []metrics.Summary
	if err := json.Unmarshal([]byte(out), &all); status != 0 || err != nil || len(all) != 2 {
		t.Fatalf("status %d, %v, stderr %q\n%s", status, err, errs, out)
	}
	for _, s := range all {
		p, l := s.ProgressiveStats, s.Live
		if s.Completed != 4 || p == nil || l == nil || p.RoundsPerLayer <= 1 || l.Rounds == 0 ||
			l.BlocksAhead != p.BlocksAhead {
			t.Fatalf("%s: %+v, %+v of %+v", s.Name, p, l, s)
		}
		if s.System == "sparseserve-psa" && (l.BlocksLoaded == 0 || p.BlocksAhead == 0) {
			t.Errorf("%s: nothing was loaded, or nothing in vain: %+v", s.Name, l)
		}
		rows, err := csv.NewReader(strings.NewReader(runFile(t, "out", s.Name, run.StepsCSV))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var ahead, rounds int64
		n := len(rows[0])
		for _, row := range rows[1:] {
			ahead, rounds = ahead+int64(atoi(t, row[n-2])), rounds+int64(atoi(t, row[n-1]))
		}
		if rows[0][n-2] != "blocks_ahead" || rows[0][n-1] != "rounds" || ahead != p.BlocksAhead ||
			rounds != l.Rounds {
			t.Errorf("%s: steps have %d blocks and %d rounds in %v, the device counts %d and %d", s.Name,
				ahead, rounds, rows[0][n-2:], p.BlocksAhead, l.Rounds)
		}
	}
	status, out, errs = runHere(t.Context(), run.NewSimulator().Run,
		append(args, "--select=model", "--force")...)
	if want := "a device selects a fixed number of blocks, psa does not"; status != 1 ||
		!strings.Contains(errs, want) {
		t.Errorf("status %d, %q, want %q\n%s", status, errs, want, out)
	}
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
