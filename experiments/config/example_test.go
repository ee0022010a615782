package config_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// Every system runs at every rate with every seed.
func ExampleLoad() {
	c, err := config.Load("", []string{"system.preset=[vllm, sparseserve]",
		"workload.rate=[0.1, 0.2]"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range c {
		fmt.Println(p.Name, p.System.Selection.On, p.Workload.Rate)
	}
	// Output:
	// vllm-0.1-s1 false 0.1
	// vllm-0.2-s1 false 0.2
	// sparseserve-0.1-s1 true 0.1
	// sparseserve-0.2-s1 true 0.2
}

// An error names the place, the key and what was probably meant.
func ExampleKeyError() {
	_, err := config.Load("", []string{"workload.rat=0.1"})
	fmt.Println(err)
	// Output:
	// --set workload.rat=0.1: unknown key (did you mean "workload.rate"?)
}
