package diff_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/experiments/diff"
)

// Two folders of the same two seeds, the second with another window: which settings differ, and
// by how much the mean TTFT does.
func ExampleCompare() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	results := func(name, window string, ttft ...string) *diff.Folder {
		path := filepath.Join(dir, name)
		summary := fmt.Sprintf(`[{"system": "s", "seed": 1, "ttft_s": {"mean": %s}},
			{"system": "s", "seed": 2, "ttft_s": {"mean": %s}}]`, ttft[0], ttft[1])
		config := "[offload]\nworking_set_steps = " + window
		for _, err := range []error{os.Mkdir(path, 0o755),
			os.WriteFile(filepath.Join(path, "summary.json"), []byte(summary), 0o644),
			os.WriteFile(filepath.Join(path, "config.toml"), []byte(config), 0o644)} {
			if err != nil {
				panic(err)
			}
		}
		f, err := diff.Read(path)
		if err != nil {
			panic(err)
		}
		return f
	}
	report, err := diff.Compare(results("a", "12", "10", "20"), results("b", "24", "8", "17.99"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range report.Settings {
		fmt.Println(s.Key, s.A, s.B)
	}
	for _, r := range report.Rows {
		if r.Metric == "ttft_mean_s" {
			fmt.Printf("%s %s: %g s, %g s; differs: %t\n", r.Point, r.Metric, r.A, r.B, r.Differs())
		}
	}
	// Output:
	// offload.working_set_steps 12 24
	// all runs ttft_mean_s: 15 s, 12.995 s; differs: true
}
