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
	// ╭──────────────┬──────────────┬─────────┬──────────┬──────────┬──────────┬────────────────────────┬───────────────────────────────────────────────────╮
	// │ gpu          │ FP16 TFLOP/s │ HBM GiB │ HBM GB/s │ H2D GB/s │ D2H GB/s │ kernels of vLLM        │                                                   │
	// ├──────────────┼──────────────┼─────────┼──────────┼──────────┼──────────┼────────────────────────┼───────────────────────────────────────────────────┤
	// │ a100-40gb    │          312 │    40.0 │     1555 │     25.1 │     25.0 │ derived from a100-80gb │ NVIDIA A100-SXM4-40GB                             │
	// │ a100-80gb    │          312 │    80.0 │     2039 │     25.1 │     25.0 │ imported for this card │ NVIDIA A100-SXM4-80GB                             │
	// │ a100-pcie    │          312 │    80.0 │     1935 │     25.1 │     25.0 │ derived from a100-80gb │ NVIDIA A100 PCIe 80GB                             │
	// │ b200         │         2250 │     180 │     7700 │     55.4 │     55.2 │ imported for this card │ NVIDIA B200 SXM 180GB                             │
	// │ b300         │         2250 │     269 │     7750 │     55.4 │     55.2 │ derived from b200      │ NVIDIA B300 SXM 288GB                             │
	// │ gb200        │         2500 │     185 │     8000 │      195 │      194 │ derived from b200      │ NVIDIA GB200, one of its GPUs, 186GB              │
	// │ gb300        │         2500 │     278 │     8000 │      195 │      194 │ derived from b200      │ NVIDIA GB300, one of its GPUs, 279GB              │
	// │ h100-80gb    │          989 │    80.0 │     3350 │     51.2 │     50.7 │ imported for this card │ NVIDIA H100 SXM 80GB                              │
	// │ h100-pcie    │          756 │    80.0 │     2000 │     51.2 │     50.7 │ derived from h100-80gb │ NVIDIA H100 PCIe 80GB                             │
	// │ h200         │          989 │     140 │     4800 │     55.4 │     55.2 │ imported for this card │ NVIDIA H200 SXM 141GB                             │
	// │ l40s         │          362 │    45.0 │      864 │     25.1 │     25.0 │ imported for this card │ NVIDIA L40S 48GB                                  │
	// │ rtx-pro-6000 │          468 │    95.6 │     1792 │     55.4 │     55.2 │ derived from l40s      │ NVIDIA RTX PRO 6000 Blackwell Server Edition 96GB │
	// ╰──────────────┴──────────────┴─────────┴──────────┴──────────┴──────────┴────────────────────────┴───────────────────────────────────────────────────╯
	// 0
	// sparseserve: gpu: no such command (did you mean "gpus"?); see sparseserve list --help
	// 1
}
