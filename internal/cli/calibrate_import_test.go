package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sparseserve/sparseserve/hw"
)

// tableOfGEMMs writes a card's folder with a table of one operation.
func tableOfGEMMs(t *testing.T) string {
	t.Helper()
	type row struct {
		Framework string  `parquet:"framework"`
		Version   string  `parquet:"version"`
		Device    string  `parquet:"device"`
		Kernel    string  `parquet:"kernel_source"`
		Type      string  `parquet:"gemm_dtype"`
		M         int64   `parquet:"m"`
		N         int64   `parquet:"n"`
		K         int64   `parquet:"k"`
		Latency   float64 `parquet:"latency"`
	}
	var rows []row
	sides := []int64{128, 512, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192, 12288, 16384, 65536}
	for _, m := range []int64{1, 4, 8, 16, 32, 64, 128, 256, 512, 640, 1024, 2048, 4096, 8192} {
		for _, n := range sides {
			for _, k := range sides {
				rows = append(rows, row{"VLLM", "0.24.0", "NVIDIA H200", "linear", "bfloat16", m, n, k,
					0.004 + float64(n*k)*2/4e9 + float64(m*n*k)*2/600e9})
			}
		}
	}
	dir := filepath.Join(t.TempDir(), "h200_sxm")
	path := filepath.Join(dir, "gemm", "vllm-0.24.0", "gemm_perf.parquet")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An import writes a card that runs, its kernels, and the table and plots of a calibration,
// and says how near its prices are.
func TestCalibrateImports(t *testing.T) {
	dir := tableOfGEMMs(t)
	out := filepath.Join(t.TempDir(), "made.toml")
	status, stdout, stderr := calibrateWith("import", dir, "--card", "h200", "--out", out)
	if status != exitOK || stderr != "" {
		t.Fatalf("exit %d, stderr %q", status, stderr)
	}
	for _, want := range []string{"gemm of bf16", "held out", "100.0 %",
		"no table moe_perf", out + ": a card; --set gpu="} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	p, err := hw.Load(out, "vllm-0.15", nil)
	if err != nil || len(p.Grids) == 0 {
		t.Errorf("the card does not run: %v", err)
	}
	plots := strings.TrimSuffix(out, ".toml")
	fits, err := os.ReadFile(filepath.Join(plots, "fits.csv"))
	if err != nil || strings.Count(string(fits), ",fit,") < 100 ||
		strings.Count(string(fits), ",held out,") < 100 {
		t.Errorf("fits.csv: %v\n%.300s", err, fits)
	}
	drawn, err := filepath.Glob(filepath.Join(plots, "fit-*.png"))
	if err != nil || len(drawn) == 0 {
		t.Errorf("plots %v, %v", drawn, err)
	}
}

// An import takes no flag of a measurement, and names a folder without tables.
func TestCalibrateImportRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag --quick":     {"--quick"},
		"no .parquet file":         nil,
		"unexpected argument more": {"more"},
	} {
		args = append([]string{"import", t.TempDir(), "--card", "h200", "--out",
			filepath.Join(t.TempDir(), "x.toml")}, args...)
		status, stdout, stderr := calibrateWith(args...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, stdout %q, stderr %q, want %q", status, stdout, stderr, want)
		}
	}
}
