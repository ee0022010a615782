package weights

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// expected is what hf.py writes next to each model.
type expected struct {
	Torch, Transformers, Device string
	Cases                       []struct {
		Prompt []int
		// the smallest difference of the two best logits on the greedy path in fp32
		Margin             float64
		Greedy32, Greedy16 []int
		Logits32, Logits16 []float64 // after the prompt
	}
}

// The exact reference computes what HuggingFace does in fp32, and the rounding one what it does in
// fp16. SPARSESERVE_HF_FIXTURES is the folder that cuda/live/hf.py wrote.
func TestReferenceIsHuggingFace(t *testing.T) {
	folder := os.Getenv("SPARSESERVE_HF_FIXTURES")
	if folder == "" {
		t.Skip("SPARSESERVE_HF_FIXTURES is not set: python3 cuda/live/hf.py FOLDER writes what to " +
			"compare with, where PyTorch and transformers are")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "expected.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no */expected.json in %s (%v)", folder, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)),
			func(t *testing.T) { checkFixture(t, filepath.Dir(file)) })
	}
}

// Errors of two layers as shares of the largest logit: sums in fp32, and values that are rounded to
// fp16, which by itself moves logits by 0.001.
const share32, share16 = 2e-5, 2.5e-3

func checkFixture(t *testing.T, folder string) {
	data, err := os.ReadFile(filepath.Join(folder, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want expected
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Cases) == 0 {
		t.Fatal("expected.json has no cases")
	}
	f := open(t, folder)
	exact, err := Reference(f, reference.Exact)
	if err != nil {
		t.Fatal(err)
	}
	low, err := Reference(f, cuda.Rounded)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("transformers %s, torch %s, %s", want.Transformers, want.Torch, want.Device)
	clear := 0
	for _, c := range want.Cases {
		worst32, allowed32 := compare(t, exact, c.Prompt, c.Logits32, share32)
		worst16, allowed16 := compare(t, low, c.Prompt, c.Logits16, share16)
		t.Logf("prompt of %d: fp32 within %.2g, fp16 within %.2g, margin %.2g", len(c.Prompt), worst32,
			worst16, c.Margin)
		if worst32 > allowed32 || worst16 > allowed16 {
			t.Errorf("prompt of %d: logits differ by %g in fp32, %g in fp16; %g and %g are allowed",
				len(c.Prompt), worst32, worst16, allowed32, allowed16)
		}
		if got := exact.Greedy(c.Prompt, len(c.Greedy32)); c.Margin > 2*allowed32 &&
			!slices.Equal(got, c.Greedy32) {
			t.Errorf("prompt of %d: greedy tokens\n%v, HuggingFace in fp32 picks\n%v", len(c.Prompt), got,
				c.Greedy32)
		}
		if c.Margin <= 3*allowed16 {
			continue // fp16 may part
		}
		clear++
		if got := low.Greedy(c.Prompt, len(c.Greedy16)); !slices.Equal(got, c.Greedy16) {
			t.Errorf("prompt of %d: greedy tokens\n%v, HuggingFace in fp16 picks\n%v", len(c.Prompt), got,
				c.Greedy16)
		}
	}
	if clear == 0 {
		t.Error("no prompt is clear enough to compare greedy tokens in fp16")
	}
}

// compare returns the largest difference of the logits after a prompt, and what is allowed.
func compare(t *testing.T, m *reference.Llama, prompt []int, want []float64, share float64) (worst,
	allowed float64) {
	t.Helper()
	all := m.Forward(prompt, reference.Selector{})
	got := all[len(all)-1]
	if len(got) != len(want) {
		t.Fatalf("%d logits, HuggingFace has %d", len(got), len(want))
	}
	for i := range want {
		worst = math.Max(worst, math.Abs(got[i]-want[i]))
		allowed = math.Max(allowed, share*math.Abs(want[i]))
	}
	return worst, allowed
}
