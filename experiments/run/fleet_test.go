package run

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// A fleet's tables say which replica served what and how often a request began anew; they agree
// with its summary, and the trace has a process a replica.
func TestFleetOutputs(t *testing.T) {
	c := mustLoad(t, "", "system.preset=sparseserve", "system.engine=vllm-0.5",
		"workload.rate=1", "workload.requests=24", "workload.output_scale=0.3",
		"fleet.replicas=3", "fleet.router=least-working-set", "fleet.fail=[[8, 1, 5]]",
		"fleet.drain=[[12, 2]]")
	var requests, steps, trace bytes.Buffer
	sum, err := NewSimulator().Run(t.Context(), c[0],
		Sink{Requests: &requests, Steps: &steps, Trace: &trace})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Completed != 24 || sum.Replicas != 3 || sum.Retried == 0 || len(sum.ReplicaLoads) != 3 {
		t.Fatalf("%+v", sum)
	}
	rows := column(t, &requests, "replica")
	retries := 0
	for _, n := range column(t, &requests, "retries") {
		retries += n
	}
	if retries != sum.Retried ||
		!warn.Has(sum.Warnings, warn.BeganAnew) {
		t.Errorf("%d retries in requests.csv, the summary has %d: %v", retries, sum.Retried, sum.Warnings)
	}
	inSteps := column(t, &steps, "replica")
	for i, load := range sum.ReplicaLoads {
		if n := count(rows, i); n != load.Requests || n == 0 {
			t.Errorf("replica %d: %d requests in requests.csv, the summary has %d", i, n, load.Requests)
		}
		if !(load.BusyShare > 0 && load.BusyShare <= 1) || !(load.PeakKVUse > 0 && load.PeakKVUse <= 1) ||
			count(inSteps, i) == 0 {
			t.Errorf("replica %d: %+v", i, load)
		}
	}
	if int64(len(inSteps)) != sum.Steps {
		t.Errorf("%d rows in steps.csv, the summary has %d steps", len(inSteps), sum.Steps)
	}
	var doc struct {
		TraceEvents []struct{ Pid int }
	}
	if err := json.Unmarshal(trace.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	processes := map[int]bool{}
	for _, e := range doc.TraceEvents {
		processes[e.Pid] = true
	}
	if len(processes) != 3 {
		t.Errorf("processes %v, want 3", processes)
	}
}

func count(all []int, n int) (times int) {
	for _, x := range all {
		if x == n {
			times++
		}
	}
	return times
}

// column returns a column of whole numbers of a table.
func column(t *testing.T, table *bytes.Buffer, name string) (values []int) {
	rows, err := csv.NewReader(bytes.NewReader(table.Bytes())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(rows[0], name)
	if at < 0 {
		t.Fatalf("no column %s in %v", name, rows[0])
	}
	for _, row := range rows[1:] {
		n, err := strconv.Atoi(row[at])
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, n)
	}
	return values
}
