package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// published are gains in output tokens/s by HiSparse, by concurrent requests, and the folder of the
// command that simulates them.
var published = []struct {
	server, folder string
	gains          map[int]string
}{
	{"GLM-5.1-FP8, eight H200, 32k in, 8k out (LMSYS, 10 April 2026)", "lmsys",
		map[int]string{256: "above 3"}},
	{"eight RTX PRO 6000, 32k in, 2k out (sgl-project/sglang, pull request 33075)", "sglang",
		map[int]string{8: "1.19", 16: "1.66", 32: "2.43", 54: "3.00"}},
}

// TestHotBuffersPage runs the commands of docs/hot-buffers.md that stand below its published runs,
// and compares the picture and the ratios that it shows. With -update it renews both.
func TestHotBuffersPage(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for ten seconds")
	}
	root := absolute(t, "..", "..")
	t.Chdir(t.TempDir())
	if err := os.Symlink(filepath.Join(root, "examples"), "examples"); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(root, "docs", "hot-buffers.md")
	for _, c := range commandsOf(t, page) {
		if strings.Contains(c.line, "examples/11-hisparse.toml") {
			words := strings.Fields(strings.ReplaceAll(c.line, "'", ""))
			status, _, errs := runHere(t.Context(), run.NewSimulator().Run, words[1:]...)
			if status != exitOK {
				t.Fatalf("%s: exit status %d\n%s", c.line, status, errs)
			}
		}
	}
	columns := []int{8, 16, 32, 54, 256}
	table := "| | 8 | 16 | 32 | 54 | 256 |\n|-|-:|-:|-:|-:|-:|\n"
	for _, p := range published {
		text, err := os.ReadFile(filepath.Join("out", p.folder, "summary.json"))
		if err != nil {
			t.Fatal(err)
		}
		var runs []metrics.Summary
		if err := json.Unmarshal(text, &runs); err != nil {
			t.Fatal(err)
		}
		rate := map[string]float64{}
		for i := range runs {
			rate[fmt.Sprint(runs[i].System, runs[i].Concurrency)] = runs[i].ThroughputTokS
		}
		measured, simulated := "| "+p.server+" |", "| simulated, out/"+p.folder+" |"
		for _, n := range columns {
			if p.gains[n] == "" {
				measured, simulated = measured+" |", simulated+" |"
				continue
			}
			measured += " " + p.gains[n] + " |"
			simulated += fmt.Sprintf(" %.2f |", rate[fmt.Sprint("hisparse", n)]/rate[fmt.Sprint("dsa", n)])
		}
		table += measured + "\n" + simulated + "\n"
	}
	testkit.Block(t, page, "hisparse", table)
	samePicture(t, filepath.Join("out", "hisparse", "throughput.png"),
		filepath.Join(root, "docs", "images", "hisparse.png"))
}
