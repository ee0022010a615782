package weights

import (
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// The figures come from the expressions of cuda/fill.cu compiled as C: the first eight values, and
// sum = 31 sum + bits over 100,000.
func TestFillIsTheKernels(t *testing.T) {
	for _, c := range []struct {
		seed  uint64
		scale float32
		first []cuda.Half
		sum   uint64
	}{
		{1, 1, []cuda.Half{0x3889, 0xbb75, 0x3966, 0x3aa0, 0xb8d7, 0x3a07, 0xb364, 0x3ac5},
			0x2e16f06148e3e129},
		{0xfedcba9876543210, 0.0274469, []cuda.Half{0x26fa, 0x1d24, 0x22ba, 0xa42b, 0x1a50, 0xa4af,
			0x146d, 0xa5ef}, 0xa423c6d410f86542},
		{7, 0.0001, []cuda.Half{0x8595, 0x8165, 0x03df, 0x8075, 0x834a, 0x8524, 0x0320, 0x055a},
			0x69d4a6e155802ad3},
	} {
		got := make([]cuda.Half, 100000)
		cuda.Fill(got, c.seed, c.scale)
		if !slices.Equal(got[:8], c.first) {
			t.Errorf("seed %d: %#04x, want %#04x", c.seed, got[:8], c.first)
		}
		sum := uint64(0)
		for _, h := range got {
			sum = 31*sum + uint64(h)
		}
		if sum != c.sum {
			t.Errorf("seed %d: sum %#x, want %#x", c.seed, sum, c.sum)
		}
	}
}

func TestRandomTensors(t *testing.T) {
	c := plain(llm.Model{Layers: 2, Hidden: 256, QHeads: 8, KVHeads: 2, HeadDim: 64, FFN: 344,
		Vocab: 503})
	r, err := NewRandom(c, 42)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := NewRandom(c, 42)
	other, _ := NewRandom(c, 43)
	seeds := map[uint64]Tensor{}
	for _, tensor := range r.Config().Tensors() {
		rows, in := tensor.Shape(c)
		read := func(r *Random) []cuda.Half {
			dst := make([]cuda.Half, rows*in)
			if err := r.Read(tensor, dst); err != nil {
				t.Fatal(err)
			}
			return dst
		}
		got := read(r)
		seed, scale, ok := r.Fill(tensor)
		if ok == tensor.isNorm() {
			t.Errorf("%v: filled is %v", tensor, ok)
		}
		if !ok {
			if slices.ContainsFunc(got, func(h cuda.Half) bool { return h.Float() != 1 }) {
				t.Errorf("%v is not all ones", tensor)
			}
			continue
		}
		if was, twice := seeds[seed]; twice {
			t.Errorf("%v and %v have one seed", tensor, was)
		}
		seeds[seed] = tensor
		filled := make([]cuda.Half, len(got))
		cuda.Fill(filled, seed, scale)
		if !slices.Equal(got, filled) || !slices.Equal(got, read(again)) ||
			slices.Equal(got, read(other)) {
			t.Errorf("%v: not what its seed and scale give, or the model's seed does not matter", tensor)
		}
		variance := 0.0
		for _, h := range got {
			variance += h.Float() * h.Float() / float64(len(got))
		}
		want := 1 / float64(in)
		if tensor.Kind == Embed {
			want = 1. / 3
		}
		if math.Abs(variance/want-1) > 0.03 {
			t.Errorf("%v: variance %g, want %g", tensor, variance, want)
		}
	}
	if len(seeds) != 10 {
		t.Errorf("%d tensors are filled, want 10", len(seeds))
	}
}

func TestRandomTied(t *testing.T) {
	c := tiny()
	c.TiedEmbeddings = true
	r, err := NewRandom(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	headSeed, headScale, _ := r.Fill(Tensor{Kind: Head})
	embedSeed, embedScale, _ := r.Fill(Tensor{Kind: Embed})
	if headSeed != embedSeed || headScale != embedScale {
		t.Error("a tied head is not filled as the embedding")
	}
	c.KVHeads = 3
	_, err = NewRandom(c, 1)
	wantError(t, "heads", err, "kv_heads")
}
