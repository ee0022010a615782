package experiments_test

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/experiments"
)

// Built-in experiments are configurations in TOML, by name.
func ExampleNamed() {
	e, ok := experiments.Named("fig10a")
	fmt.Println(ok, e.Command)
	title, _, _ := strings.Cut(e.Text, "\n")
	fmt.Println(title)
	// Output:
	// true simulate
	// # Figs. 10a, 11a, 12a: four systems against the request rate, LWM-7B.
}
