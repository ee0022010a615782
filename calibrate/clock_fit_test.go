package calibrate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What attention draws shows where it is most of a chunk: with chunks after 32K tokens and more an
// H200's samples tell it, without them a profile takes the limit.
func TestLongChunksTellAttentionsPower(t *testing.T) {
	path := filepath.Join("..", "hw", "kernels", "hopper.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, long := range []bool{true, false} {
		s, err := ParseSamples(path, text)
		if err != nil {
			t.Fatal(err)
		}
		s.Records = slices.DeleteFunc(s.Records, func(r Record) bool {
			return !long && r.Point.Probe == probeChunk && r.Point.At("prefix_tokens") >= 32768
		})
		c, err := Fit(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Profile.Clock.AttentionPower; got.Set() != long ||
			long && (got.Value < 0.9 || got.Value > 1.1) {
			t.Errorf("with long chunks %v: attention draws %+v", long, got)
		}
		if !c.Profile.Clock.GEMMSteadyRatio.Set() {
			t.Errorf("with long chunks %v: there is no clock", long)
		}
	}
}
