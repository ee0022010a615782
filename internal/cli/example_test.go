package cli_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sparseserve/sparseserve/internal/cli"
)

// A command line in, text and an exit status out.
func ExampleApp_Main() {
	var table strings.Builder
	app := cli.App{Stdout: &table, Stderr: os.Stdout}
	status := app.Main(context.Background(), []string{"list", "gpus"})
	fmt.Println(status, strings.Contains(table.String(), "│ NVIDIA H200 SXM 141GB "))
	fmt.Println(app.Main(context.Background(), []string{"simulat"}))
	// Output:
	// 0 true
	// sparseserve: unexpected argument simulat, did you mean "simulate"?; see sparseserve --help
	// 1
}
