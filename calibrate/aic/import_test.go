package aic

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
)

// gemmTable is one of GEMMs as AIConfigurator writes it.
type gemmTable struct {
	Framework string  `parquet:"framework,optional"`
	Version   string  `parquet:"version,optional"`
	Device    string  `parquet:"device,optional"`
	Operation string  `parquet:"op_name,optional"`
	Kernel    string  `parquet:"kernel_source,optional"`
	Type      string  `parquet:"gemm_dtype,optional"`
	M         int64   `parquet:"m,optional"`
	N         int64   `parquet:"n,optional"`
	K         int64   `parquet:"k,optional"`
	Latency   float64 `parquet:"latency,optional"`
}

// gemmTime is what every GEMM of the tests takes, ms: a launch, bytes and FLOPs, which the grid
// reads back between its points where only one of them grows.
func gemmTime(m, n, k int64) float64 {
	return 0.004 + float64(n*k)*2/4e9 + float64(m*n*k)*2/600e9
}

func gemmRows() (rows []gemmTable) {
	for _, m := range append(gemmTokens, 640) {
		for _, n := range append(gemmSides, 3072) {
			for _, k := range append(gemmSides, 3072) {
				rows = append(rows, gemmTable{"VLLM", "0.24.0", "NVIDIA H200", "gemm", "linear", "bfloat16",
					m, n, k, gemmTime(m, n, k)})
			}
		}
	}
	return rows
}

// write makes a card's folder with a table in it.
func write[T any](t *testing.T, operation string, rows []T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "h200_sxm")
	path := filepath.Join(dir, "gemm", "vllm-0.24.0", operation+".parquet")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := parquet.WriteFile(path, rows); err != nil {
		t.Fatal(err)
	}
	return dir
}

func importFrom(dir string) (*Imported, error) {
	return Import(context.Background(), dir, Options{Card: "h200", Name: "test"})
}

// Times of a table are read back at its points and between them.
func TestGEMMsAreReadBack(t *testing.T) {
	made, err := importFrom(write(t, "gemm_perf", gemmRows()))
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Kernels.Grids) != 1 || made.Kernels.Grids[0].Type != "bf16" {
		t.Fatalf("grids: %+v", made.Kernels.Grids)
	}
	g := &made.Kernels.Grids[0]
	for _, at := range [][3]int64{{1, 128, 128}, {512, 4096, 8192}, {640, 4096, 8192},
		{640, 3072, 3072}, {1, 32768, 4096}} {
		got := cost.GridSeconds(g, hw.Sizes{float64(at[0]), float64(at[1]), float64(at[2])}) * 1e3
		if want := gemmTime(at[0], at[1], at[2]); math.Abs(got/want-1) > 5e-3 {
			t.Errorf("GEMM %v: %g ms, the table says %g", at, got, want)
		}
	}
	if f := made.Kernels.Fits[0]; f.Within5 != 1 || f.HeldOut == 0 || f.MaxError > 5e-3 {
		t.Errorf("points between those of the grid: %+v", f)
	}
	notes := strings.Join(made.Kernels.Provenance.Notes, "\n")
	if !strings.Contains(notes, "no table moe_perf") {
		t.Errorf("notes do not say which tables are missing: %s", notes)
	}
	path := filepath.Join(t.TempDir(), "k.toml")
	if err := made.Kernels.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := hw.LoadKernels(path)
	if err != nil || fmt.Sprint(again.Grids) != fmt.Sprint(made.Kernels.Grids) {
		t.Errorf("written and read: %v", err)
	}
}

// A table with any byte damaged, or cut short, is read or is an error in our words.
func TestDamagedTables(t *testing.T) {
	dir := write(t, "gemm_perf", gemmRows())
	tables, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := tables.paths[0]
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	errs := 0
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 250 {
		bad := slices.Clone(good)
		// more often near the end, where the outline is
		at := len(bad) - 1 - random.IntN(len(bad)/(1+i%50))
		if bad[at] ^= byte(1 + random.IntN(255)); i%5 == 0 {
			bad = bad[:at]
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := importFrom(dir)
		if err == nil {
			continue
		}
		errs++
		for _, of := range []string{"thrift", "EOF", "readat", "crc32", "runtime error", "parquet:"} {
			if strings.Contains(strings.ReplaceAll(err.Error(), path, ""), of) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
	}
	if errs < 100 {
		t.Errorf("%d of 250 are errors", errs)
	}
}

// What cannot be right in a table is said with its file and row.
func TestBadTables(t *testing.T) {
	type other struct {
		Framework string `parquet:"framework,optional"`
		M         int64  `parquet:"m,optional"`
	}
	change := func(f func(rows []gemmTable)) []gemmTable {
		rows := gemmRows()
		f(rows)
		return rows
	}
	for name, c := range map[string]struct {
		dir  string
		want string
	}{
		"no table": {t.TempDir(), "no .parquet file"},
		"schema": {write(t, "gemm_perf", []other{{"VLLM", 1}}),
			`gemm_perf.parquet: no column "version": the table has another schema`},
		"no time": {write(t, "gemm_perf", change(func(r []gemmTable) { r[2].Latency = 0 })),
			"row 3: latency 0: want milliseconds above 0"},
		"peak": {write(t, "gemm_perf", change(func(r []gemmTable) { r[len(r)-1].Latency = 1e-4 })),
			"above the card's peak of 989"},
		"device": {write(t, "gemm_perf", change(func(r []gemmTable) { r[4].Device = "NVIDIA L4" })),
			"row 5 was measured on NVIDIA L4, row 1 on NVIDIA H200"},
		"size": {write(t, "gemm_perf", change(func(r []gemmTable) { r[0].M = -1 })), "row 1: m, n and k"},
	} {
		_, err := importFrom(c.dir)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
