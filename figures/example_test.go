package figures_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/figures"
)

// The folder of a simulation has all that its figures need.
func ExampleDrawFolders() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	files, err := figures.DrawFolders(context.Background(), dir, []string{filepath.Join("testdata",
		"seeds")}, "LWM-7B on an A100")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range files {
		fmt.Println(filepath.Base(f))
	}
	// Output:
	// ttft.png
	// throughput.png
	// tbt.png
}
