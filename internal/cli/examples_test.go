package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// Every configuration in examples/ is run by the command that its first lines
// give, from the root of the repository, with fewer requests. Runs of a plan, which are as long as
// its queues need, are pretended.
func TestExamples(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	files, err := filepath.Glob("examples/*.toml")
	if err != nil || len(files) != 13 {
		t.Fatalf("examples: %d files, want 13 (%v)", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			commands := 0
			for line := range strings.Lines(string(text)) {
				command, ok := strings.CutPrefix(strings.TrimSpace(line), "#   sparseserve ")
				if !ok {
					continue
				}
				commands++
				args := strings.Fields(command)
				if args[0] != "trace" && args[0] != "list" {
					if args[1] != file {
						t.Errorf("%s gives the command of %s", file, args[1])
					}
					args = append(args, "--set", "workload.requests=3", "--out", t.TempDir())
				}
				runner := run.NewSimulator().Run
				if args[0] == "plan" || args[0] == "goodput" {
					runner = pretend
				}
				status, stdout, stderr := runHere(t.Context(), runner, args...)
				if status != exitOK || stdout == "" {
					t.Errorf("%s: exit status %d\n%s%s", command, status, stdout, stderr)
				}
			}
			if commands == 0 {
				t.Errorf("%s does not say how it is run", file)
			}
		})
	}
}
