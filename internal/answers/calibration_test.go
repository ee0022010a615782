package answers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

func TestNumbersOfCalibrations(t *testing.T) {
	from := &hw.Provenance{Date: "2026-11-23", Device: "a card", Host: "a host", Driver: "580",
		CUDA: "13.0", Notes: []string{"an empty kernel: 8.8 us", "no table moe_perf"}}
	text := printed(t, Calibration("c", from, []hw.Fit{
		{Model: "load.flash", Samples: 69, HeldOut: 23, R2: 0.9999, MedianError: 0.0123,
			MaxError: 0.2847, Flags: []string{"worst error 28.5 %, above 15 %", "median error"}},
		{Model: "gemm of bf16", Samples: 900, HeldOut: 300, MedianError: 0.021, MaxError: 0.1,
			Within5: 0.875, Within10: 1},
	}))
	expectIn(t, text, "measured 2026-11-23, on a card, host a host, driver 580, CUDA 13.0.",
		"an empty kernel: 8.8 us no table moe_perf", "Errors are on points that the fit has not seen.",
		"load.flash 69 23 1.23 28.5 0.9999", "gemm of bf16 900 300 2.10 10.0 87.5 % 100.0 %",
		"load.flash is flagged, worst error 28.5 %, above 15 %", "load.flash is flagged, median error")
}

// The document of a folder of plots equals the document of the kernels. Without the kernels it
// names the missing files.
func TestCalibrationOfAFolder(t *testing.T) {
	k, err := hw.LoadKernels("hopper")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "calibration")
	if err := os.CopyFS(filepath.Dir(dir), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(dir + "-kernels.toml"); err != nil {
		t.Fatal(err)
	}
	got, want := made(t, dir), Calibration("calibration", &k.Provenance, k.Fits)
	if len(got.Figures) == 0 || len(got.Tables[0].Rows) < 5 {
		t.Errorf("the folder's document is %+v", got)
	}
	off := got.Figures[0].Charts[0]
	if got.Figures[0].Name != "fit-link.h2d" || !off.LogX || !slices.Equal(off.Levels,
		[]float64{-15, 0, 15}) || off.Lines[0].Points[0].Note == "" {
		t.Errorf("the fit is %+v", off)
	}
	want.Figures, want.Files = got.Figures, got.Files
	equal(t, got, want)
	if err := os.Remove(dir + "-kernels.toml"); err != nil {
		t.Fatal(err)
	}
	if d := made(t, dir); len(d.Tables) > 0 || len(d.Lead) != 1 {
		t.Errorf("without the profile: %+v", d)
	}
}
