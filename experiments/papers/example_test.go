package papers_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// A claim is measured on the results of the study that it names.
func ExampleJudge() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := run.OpenStore(filepath.Join(dir, "points"), "example", true)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	claims, err := papers.Claims("ss-fig4-h2d-flash", "ss-fig4-d2h-flash")
	if err != nil {
		fmt.Println(err)
		return
	}
	studies := papers.Studies{Dir: filepath.Join(dir, "results"), Store: store}
	if err := studies.Do(context.Background(), papers.ClaimExperiments(claims)...); err != nil {
		fmt.Println(err)
		return
	}
	outcomes, err := papers.Judge(claims, studies.Dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range outcomes {
		fmt.Println(v.ID, v.Bound, v.Value, "GB/s:", v.Class, v.Verdict)
	}
	// Output:
	// ss-fig4-h2d-flash above 20 GB/s: independent pass
	// ss-fig4-d2h-flash above 23 GB/s: construction pass
}
