package weights

import (
	"math"
	"slices"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/cuda/reference"
)

// Random and a folder holding the same values are the same model; every tensor has its part in the
// logits.
func TestReference(t *testing.T) {
	c := tiny().WithDefaults()
	r, err := NewRandom(c, 3)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Reference(r, reference.Exact)
	if err != nil {
		t.Fatal(err)
	}
	tokens := []int{1, 16, 5, 5, 2}
	want := m.Forward(tokens, reference.Selector{})
	if again := m.Forward(tokens, reference.Selector{}); !slices.Equal(again[4], want[4]) {
		t.Error("a second pass differs")
	}
	sum := 0.0
	for _, v := range want[4] {
		sum += v * v
	}
	if variance := sum / float64(c.Vocab); variance < 0.3 || variance > 3 {
		t.Errorf("logits of a random model have variance %g, want about 1", variance)
	}
	for _, tensor := range c.Tensors() {
		values := place(m, tensor)
		was := slices.Clone(*values)
		for i := range *values {
			(*values)[i] *= 1.5 + float64(i%2)
		}
		if got := m.Forward(tokens, reference.Selector{}); slices.Equal(got[4], want[4]) ||
			math.IsNaN(got[4][0]) {
			t.Errorf("%v does not matter", tensor)
		}
		copy(*values, was)
	}
	low, err := Reference(r, cuda.Rounded)
	if err != nil {
		t.Fatal(err)
	}
	if low.Forward(tokens, reference.Selector{})[4][0] != cuda.Rounded(
		low.Forward(tokens, reference.Selector{})[4][0]) {
		t.Error("logits are not rounded")
	}
}

func TestReferenceOfFolder(t *testing.T) {
	c := tiny()
	c.TiedEmbeddings = true
	r, err := NewRandom(c, 4)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Reference(r, reference.Exact)
	if err != nil {
		t.Fatal(err)
	}
	tensors := checkpoint(c, "F16")
	for _, tensor := range c.Tensors() {
		values := *place(want, tensor)
		for _, part := range partsOf(c, tensor) {
			to := tensors[part.name].values
			for i := range to {
				to[i] = float32(values[i])
			}
			values = values[len(to):]
		}
	}
	config := `{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
"intermediate_size": 10, "vocab_size": 17, "max_position_embeddings": 128, "rms_norm_eps": 1e-05, "tie_word_embeddings": true}`
	got, err := Reference(open(t, shardedFolder(t, config, tensors)), reference.Exact)
	if err != nil {
		t.Fatal(err)
	}
	tokens := []int{3, 1, 4, 1, 5, 9}
	a, b := got.Forward(tokens, reference.Selector{}), want.Forward(tokens, reference.Selector{})
	if !slices.Equal(a[5], b[5]) {
		t.Error("the folder computes something else")
	}
	if !slices.Equal(got.Greedy(tokens, 5), want.Greedy(tokens, 5)) {
		t.Error("greedy tokens differ")
	}
}
