package cost

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/sim"
)

// Reading some tokens again never costs more than reading others, and the less the more they are.
func TestReadingAgainCostsLess(t *testing.T) {
	allPairs(t, func(t *rapid.T, p *hw.Profile, m *llm.Model) {
		c := newDense(p, m)
		w := sim.Work{Decodes: rapid.IntRange(2, 64).Draw(t, "decodes")}
		context := logInt(t, 1<<17, "context")
		w.DecodeTokens = int64(w.Decodes) * context
		last, _ := c.Seconds(&w)
		for _, share := range []float64{0.1, 0.5, 0.9, 1} {
			w.RereadTokens = int64(share * float64(int64(w.Decodes-1)*context))
			got, _ := c.Seconds(&w)
			if floor := c.peak.floor(0, float64(w.DecodeTokens-w.RereadTokens)*c.bytesEach); got > last ||
				got < floor {
				t.Fatalf("%d of %d tokens again: %g s after %g, floor %g", w.RereadTokens, w.DecodeTokens,
					got, last, floor)
			}
			last = got
		}
	})
}

// The H100 is derived from an H200; these are an H100's own times.
func TestSharedPrefixesOfAnH100(t *testing.T) {
	file, err := os.Open(filepath.Join("..", "..", "cuda", "measured", "h100-shared.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p, err := hw.Load("h100-80gb", "sparseserve-live", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newDense(p, mustModel(t, "llama3-8b"))
	line := regexp.MustCompile(
		`batch (\d+), 32/8 heads, (\d+) of (\d+) tokens a head, (\d+) shared +(\S+) ms`)
	compared, worst := 0, 0.0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := line.FindStringSubmatch(lines.Text())
		if f == nil || f[2] != f[3] || f[4] == "0" { // of selected blocks, or each its own
			continue
		}
		number := func(i int) float64 {
			x, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		batch := number(1)
		got, _ := c.Seconds(&sim.Work{Decodes: int(batch), DecodeTokens: int64(batch * number(3)),
			RereadTokens: int64((batch - 1) * number(4))})
		off := got*1e3/number(5) - 1
		if compared, worst = compared+1, max(worst, math.Abs(off)); math.Abs(off) > 0.15 {
			t.Errorf("%s: %.1f us, %+.0f %%", lines.Text(), got*1e6, 100*off)
		}
	}
	t.Logf("%d batches, the worst %.1f %% off", compared, 100*worst)
	if compared < 7 {
		t.Errorf("only %d batches compared", compared)
	}
}
