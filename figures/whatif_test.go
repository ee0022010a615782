package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatIfGolden draws a small fixed what-if.
func TestWhatIfGolden(t *testing.T) {
	files, err := DrawWhatIf(t.Context(), t.TempDir(), filepath.Join("testdata", "whatif"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		golden(t, "whatif", f)
	}
}

// The interval of a share ends at 0 and 100 %, that of another metric at 0 alone.
func TestTornadoIsOfThePossible(t *testing.T) {
	low, high := -1.5, 0.4
	c := &whatIfCase{Base: whatIfValue{Value: 90}, Knobs: []whatIfKnob{{Points: []whatIfPoint{
		{Value: 95, Low: &low, High: &high}}}}}
	for label, want := range map[string]float64{"hits in HBM (%)": 100, "goodput (requests/s)": 126} {
		w := whatIf{Label: label}
		panel := layTornado(c, w.most())
		least, most := panel.interval(&c.Knobs[0].Points[0])
		if least != 0 || most < want-1e-9 || most > want+1e-9 {
			t.Errorf("%s: interval %g to %g, want 0 to %g", label, least, most, want)
		}
		if room := tornadoMargin * want; panel.high > want+room+1e-9 {
			t.Errorf("%s: the axis ends at %g", label, panel.high)
		}
	}
}

// Values that are all 0 have an axis that reads.
func TestTornadoOfZeros(t *testing.T) {
	c := &whatIfCase{Knobs: []whatIfKnob{{Points: []whatIfPoint{{}}}}}
	if panel := layTornado(c, 100); panel.low != 0 || panel.high != 1 {
		t.Errorf("axis from %g to %g, want 0 to 1", panel.low, panel.high)
	}
}

func TestWhatIfOfNothing(t *testing.T) {
	for text, want := range map[string]string{`{"cases":[]}`: "no case",
		`{"cases":`: "cut short"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "whatif.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := DrawWhatIf(t.Context(),
			dir, dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
