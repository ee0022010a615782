package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

type traceEvent struct {
	Ph, Name string
	Tid      int
	Ts, Dur  float64 // us
	Args     struct {
		Step *int
		Name string
	}
}

// The trace of a run is well-formed, its lanes never overlap, and each step's phases equal those in
// steps.csv, from its start to its end.
func TestTraceAgreesWithSteps(t *testing.T) {
	for _, system := range []string{"vllm", "vllm-so", "sparseserve"} {
		t.Run(system, func(t *testing.T) {
			c, err := config.Load("", []string{"system.preset=" + system, "workload.rate=0.3",
				"workload.requests=8", "workload.output_scale=0.2"})
			if err != nil {
				t.Fatal(err)
			}
			var trace, steps, requests bytes.Buffer
			if _, err := NewSimulator().Run(t.Context(), c[0],
				Sink{Requests: &requests, Steps: &steps, Trace: &trace}); err != nil {
				t.Fatal(err)
			}
			var doc struct {
				TraceEvents []traceEvent `json:"traceEvents"`
			}
			if err := json.Unmarshal(trace.Bytes(), &doc); err != nil {
				t.Fatal(err)
			}
			lanes := checkLanes(t, doc.TraceEvents)
			names := []string{"scheduler", "compute", "H2D", "D2H"}
			if system == "sparseserve" {
				names = append(names, "CPU scatter")
			}
			if !slices.Equal(lanes, names) {
				t.Errorf("lanes %v, want %v", lanes, names)
			}
			checkSteps(t, doc.TraceEvents, &steps)
		})
	}
}

// checkLanes returns the names of the lanes and complains of slices that
// overlap or are on none of them.
func checkLanes(t *testing.T, events []traceEvent) (names []string) {
	last := map[int]traceEvent{}
	for _, e := range events {
		switch {
		case e.Ph == "M" && e.Name == "thread_name":
			names = append(names, e.Args.Name)
		case e.Ph == "X":
			if e.Tid < 1 || e.Tid > len(names) || e.Dur <= 0 {
				t.Fatalf("slice %+v", e)
			}
			if p := last[e.Tid]; e.Ts < p.Ts+p.Dur-1e-6*math.Max(1, e.Ts*1e-6) {
				t.Fatalf("lane %s: %s at %.3f us starts before %s ends at %.3f us", names[e.Tid-1], e.Name,
					e.Ts, p.Name, p.Ts+p.Dur)
			}
			last[e.Tid] = e
		}
	}
	return names
}

// checkSteps compares the slices of each step with its row.
func checkSteps(t *testing.T, events []traceEvent, steps *bytes.Buffer) {
	rows, err := csv.NewReader(steps).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{
		"host": "host_s", "scoring": "scoring_s", "load stall": "load_stall_s", "load": "load_stall_s",
		"linears":           "linears_s",
		"prefill attention": "prefill_attention_s", "dense attention": "dense_attention_s",
		"sparse attention": "sparse_attention_s", "save stall": "save_stall_s", "LM head": "head_s",
	}
	value := func(row []string, column string) float64 {
		i := slices.Index(rows[0], column)
		v, err := strconv.ParseFloat(row[i], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	end := make([]float64, len(rows)-1)   // of the last slice of compute and scheduler
	total := make([]float64, len(rows)-1) // of both
	saves := 0
	for _, e := range events {
		if e.Ph != "X" {
			continue
		}
		row := rows[1+*e.Args.Step]
		column, ok := columns[e.Name]
		if !ok {
			if saves++; e.Name != "save" && e.Name != "scatter" || value(row, "blocks_saved") == 0 {
				t.Fatalf("slice %+v of a step that saves %s blocks", e,
					row[slices.Index(rows[0], "blocks_saved")])
			}
			continue
		}
		if want := value(row, column); math.Abs(e.Dur*1e-6-want) > 1e-12 {
			t.Fatalf("step %d: %s takes %g s, steps.csv says %g", *e.Args.Step, e.Name, e.Dur*1e-6, want)
		}
		if e.Name != "load" {
			end[*e.Args.Step] = math.Max(end[*e.Args.Step], e.Ts+e.Dur)
			total[*e.Args.Step] += e.Dur
		}
	}
	saved := 0.0
	for i, row := range rows[1:] {
		start, elapsed := value(row, "start_s"), value(row, "elapsed_s")
		if math.Abs(total[i]*1e-6-elapsed) > 1e-9 || math.Abs(end[i]*1e-6-start-elapsed) > 1e-9 {
			t.Fatalf("step %d: slices take %g s and end at %g s; steps.csv says %g s and %g s",
				i, total[i]*1e-6, end[i]*1e-6, elapsed, start+elapsed)
		}
		saved += value(row, "blocks_saved")
	}
	if (saves > 0) != (saved > 0) {
		t.Errorf("%d slices of saves for %g blocks", saves, saved)
	}
}
