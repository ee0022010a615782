package main

import (
	"flag"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
)

var benchProgram = flag.String("program", "", "the binary that BenchmarkProcess runs")

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
	bin := *benchProgram
	if bin == "" {
		bin = filepath.Join(b.TempDir(), "sparseserve")
		if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
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
