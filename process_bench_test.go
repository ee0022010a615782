package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

var (
	benchProgram = flag.String("program", "", "the binary that BenchmarkProcess runs")
	benchTrace   = flag.String("mooncake", "", "a trace of Mooncake for BenchmarkWholeTrace")
)

// yardsticks are loads of an 8B model on an A100-80GB, of fixed lengths.
var yardsticks = []struct{ name, system, prompt, output, rate, requests string }{
	{"2k-of-8192-200", "vllm", "8192", "200", "0.75", "2000"},
	{"20k-of-8192-200", "vllm", "8192", "200", "0.75", "20000"},
	{"10k-of-512-128", "vllm", "512", "128", "10", "10000"},
	{"100k-of-512-128", "vllm", "512", "128", "10", "100000"},
	{"500-of-100k-500", "vllm", "100000", "500", "0.1", "500"},
	{"sparse-2k-of-8192-200", "sparseserve", "8192", "200", "0.75", "2000"},
	{"sparse-500-of-100k-500", "sparseserve", "100000", "500", "0.1", "500"},
}

// Each is a whole process, as users start it, into a new folder, of the binary that -program names
// or of one built from here. Reported is the least processor time, user and system, of its runs:
// others' work on the machine only adds to it.
func BenchmarkProcess(b *testing.B) {
	bin := benchBinary(b)
	run := func(b *testing.B, args func() []string) {
		least := math.Inf(1)
		for b.Loop() {
			cmd := exec.Command(bin, args()...)
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			p := cmd.ProcessState
			least = min(least, (p.UserTime() + p.SystemTime()).Seconds())
		}
		b.ReportMetric(least, "cpu-s")
	}
	b.Run("help", func(b *testing.B) { run(b, func() []string { return []string{"--help"} }) })
	b.Run("list", func(b *testing.B) { run(b, func() []string { return []string{"list", "models"} }) })
	for _, y := range yardsticks {
		b.Run(y.name, func(b *testing.B) {
			run(b, func() []string {
				return []string{"simulate", "--json", "--out", b.TempDir(),
					"--set", "gpu=a100-80gb", "--set", "model=llama3-8b", "--set", "system.preset=" + y.system,
					"--set", "workload.prompt_lengths=fixed(" + y.prompt + ")",
					"--set", "workload.output_lengths=fixed(" + y.output + ")",
					"--set", "workload.rate=" + y.rate, "--set", "workload.requests=" + y.requests}
			})
		})
	}
}

func benchBinary(b *testing.B) string {
	if *benchProgram != "" {
		return *benchProgram
	}
	bin := filepath.Join(b.TempDir(), "sparseserve")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// wholeTrace is the requests of Mooncake's conversation trace.
const wholeTrace = 12_031

// A trace as long as Mooncake's conversations, through a prefix cache in three tiers, on one core:
// processor time and the peak of resident memory. The trace is -mooncake's, again and again.
func BenchmarkWholeTrace(b *testing.B) {
	if *benchTrace == "" {
		b.Skip("no trace: -mooncake FILE names one of Mooncake's")
	}
	text, err := os.ReadFile(*benchTrace)
	if err != nil {
		b.Fatal(err)
	}
	rows, err := again(text, wholeTrace)
	if err != nil {
		b.Fatalf("%s: %v", *benchTrace, err)
	}
	trace := filepath.Join(b.TempDir(), "trace.jsonl")
	if err := os.WriteFile(trace, rows, 0o644); err != nil {
		b.Fatal(err)
	}
	bin, least, most := benchBinary(b), math.Inf(1), int64(0)
	for b.Loop() {
		cmd := exec.Command(bin, "simulate", "--out", b.TempDir(),
			"--set", "model=llama3-8b", "--set", "gpu=h100-80gb", "--set", "workload.trace="+trace,
			"--set", "system.preset=vllm-0.15", "--set", "system.tensor_parallel=4",
			"--set", "prefix_cache.mode=vllm", "--set", "prefix_cache.dram_gib=200",
			"--set", "prefix_cache.ssd_gib=1000")
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		p := cmd.ProcessState
		least = min(least, (p.UserTime() + p.SystemTime()).Seconds())
		most = max(most, p.SysUsage().(*syscall.Rusage).Maxrss)
	}
	b.ReportMetric(least, "cpu-s")
	b.ReportMetric(float64(most)/1024, "MiB") // of KiB, as Linux counts
}

// again repeats the rows of a Mooncake trace until there are n. Each copy is later and renames all
// blocks except the one with which all prompts begin.
func again(trace []byte, n int) ([]byte, error) {
	type row struct {
		Timestamp int64   `json:"timestamp"`
		Input     int64   `json:"input_length"`
		Output    int64   `json:"output_length"`
		HashIDs   []int64 `json:"hash_ids"`
	}
	var rows []row
	var ids, ends int64
	for lines := bufio.NewScanner(bytes.NewReader(trace)); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		for _, id := range r.HashIDs {
			ids = max(ids, id+1)
		}
		rows, ends = append(rows, r), r.Timestamp
	}
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	for i := range n {
		r, copies := rows[i%len(rows)], int64(i/len(rows))
		r.Timestamp += copies * ends
		named := make([]int64, len(r.HashIDs))
		for j, id := range r.HashIDs {
			if named[j] = id; id != rows[0].HashIDs[0] {
				named[j] += copies * ids
			}
		}
		r.HashIDs = named
		if err := lines.Encode(r); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func TestTraceAgain(t *testing.T) {
	const row = `{"timestamp":%d,"input_length":600,"output_length":2,"hash_ids":[0,%d]}` + "\n"
	trace := fmt.Sprintf(row, 0, 1) + fmt.Sprintf(row, 70, 2)
	want := trace + fmt.Sprintf(row, 70, 4) + fmt.Sprintf(row, 140, 5) + fmt.Sprintf(row, 140, 7)
	if got, err := again([]byte(trace), 5); err != nil || string(got) != want {
		t.Errorf("want\n%s, got\n%s, %v", want, got, err)
	}
}
