package cli_test

import (
	"context"
	"fmt"
	"os"

	"github.com/sparseserve/sparseserve/internal/cli"
)

// A command line in, text and an exit status out.
func ExampleApp_Main() {
	app := cli.App{Stdout: os.Stdout, Stderr: os.Stdout}
	fmt.Println(app.Main(context.Background(), []string{"list", "gpus"}))
	fmt.Println(app.Main(context.Background(), []string{"list", "gpu"}))
	// Output:
	// ╭───────────┬──────────────┬─────────┬──────────┬──────────┬──────────┬───────────────────────╮
	// │ gpu       │ FP16 TFLOP/s │ HBM GiB │ HBM GB/s │ H2D GB/s │ D2H GB/s │                       │
	// ├───────────┼──────────────┼─────────┼──────────┼──────────┼──────────┼───────────────────────┤
	// │ a100-40gb │          312 │    40.0 │     1555 │     25.1 │     25.0 │ NVIDIA A100-SXM4-40GB │
	// │ a100-80gb │          312 │    80.0 │     2039 │     25.1 │     25.0 │ NVIDIA A100-SXM4-80GB │
	// │ h100-80gb │          989 │    80.0 │     3350 │     51.2 │     50.7 │ NVIDIA H100 SXM 80GB  │
	// │ h200      │          989 │     140 │     4800 │     55.4 │     55.2 │ NVIDIA H200 SXM 141GB │
	// ╰───────────┴──────────────┴─────────┴──────────┴──────────┴──────────┴───────────────────────╯
	// 0
	// sparseserve: gpu: no such command (did you mean "gpus"?); see sparseserve list --help
	// 1
}
