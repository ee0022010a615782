package traces_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/traces"
)

// The built-in LongBench mix with Poisson arrivals: equal seeds give equal requests.
func ExampleOpen() {
	spec := traces.DefaultSpec()
	spec.Requests = 3
	s, err := traces.Open(spec, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	for {
		a, ok, err := s.Next()
		if !ok || err != nil {
			break
		}
		fmt.Printf("%.1f s: %s, %d prompt and %d output tokens\n", a.At.Seconds(), a.Set,
			a.Prompt, a.Output)
	}
	// Output:
	// 1.5 s: lcc, 8931 prompt and 64 output tokens
	// 3.6 s: gov_report, 6265 prompt and 513 output tokens
	// 4.7 s: gov_report, 10272 prompt and 513 output tokens
}
