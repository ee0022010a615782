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
	fmt.Println(app.Main(context.Background(), []string{"list", "gpu"}))
	// Output:
	// sparseserve: gpu: no such command (did you mean "gpus"?); see sparseserve list --help
	// 1
}
