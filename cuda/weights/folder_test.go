package weights

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// A tensor of the layout, by the names it is made of, in the order of rows.
var layout = map[string][]string{
	"embed": {"model.embed_tokens.weight"}, "norm": {"model.norm.weight"}, "head": {"lm_head.weight"},
	"layers.1.attn_norm": {"model.layers.1.input_layernorm.weight"},
	"layers.1.qkv": {"model.layers.1.self_attn.q_proj.weight",
		"model.layers.1.self_attn.k_proj.weight", "model.layers.1.self_attn.v_proj.weight"},
	"layers.1.o":        {"model.layers.1.self_attn.o_proj.weight"},
	"layers.1.mlp_norm": {"model.layers.1.post_attention_layernorm.weight"},
	"layers.1.gate_up":  {"model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight"},
	"layers.1.down":     {"model.layers.1.mlp.down_proj.weight"},
	"layers.0.qkv": {"model.layers.0.self_attn.q_proj.weight",
		"model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight"},
	"layers.0.down": {"model.layers.0.mlp.down_proj.weight"},
}

func TestFolderReadsEveryTensor(t *testing.T) {
	for _, dtype := range []string{"F16", "BF16", "F32"} {
		tensors := checkpoint(tiny(), dtype)
		for name, dir := range map[string]string{"one file": folderOf(t, tinyJSON, tensors),
			"shards": shardedFolder(t, tinyJSON, tensors)} {
			f := open(t, dir)
			if bare(f.Config()) != tiny() {
				t.Fatalf("config %+v, want %+v", f.Config(), tiny())
			}
			compared := 0
			for _, tensor := range f.Config().Tensors() {
				got := make([]cuda.Half, tensor.Values(f.Config()))
				if err := f.Read(tensor, got); err != nil {
					t.Fatal(err)
				}
				var want []float32
				for _, part := range layout[tensor.String()] {
					want = append(want, tensors[part].values...)
				}
				if want == nil {
					continue
				}
				compared++
				for i := range want {
					if len(want) != len(got) || got[i].Float() != float64(want[i]) {
						t.Fatalf("%s, %s: value %d of %v is %g, want %g", dtype, name, i, tensor,
							got[i].Float(), want[i])
					}
				}
			}
			if compared != len(layout) {
				t.Errorf("%s: compared %d tensors, want %d", name, compared, len(layout))
			}
		}
	}
}

func TestFolderTied(t *testing.T) {
	c := tiny()
	c.TiedEmbeddings = true
	tensors := checkpoint(c, "F16")
	config := strings.Replace(tinyJSON, `"tie_word_embeddings": false`,
		`"tie_word_embeddings": true`, 1)
	for _, stored := range []bool{false, true} {
		if stored {
			tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]
		}
		f := open(t, folderOf(t, config, tensors))
		embed, head := make([]cuda.Half, c.Vocab*c.Hidden), make([]cuda.Half, c.Vocab*c.Hidden)
		if err := f.Read(Tensor{Kind: Embed}, embed); err != nil {
			t.Fatal(err)
		}
		if err := f.Read(Tensor{Kind: Head}, head); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(embed, head) || embed[1] == 0 {
			t.Errorf("head stored: %v: the head is not the embedding", stored)
		}
		if slices.Contains(f.Config().Tensors(), Tensor{Kind: Head}) {
			t.Error("a tied head is listed")
		}
	}
}

// Old checkpoints store the frequencies; other weights that a Llama lacks are refused.
func TestFolderIgnoresFrequenciesAlone(t *testing.T) {
	tensors := checkpoint(tiny(), "F16")
	tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = saved{"F32", []int{2}, []float32{1, 2}}
	open(t, folderOf(t, tinyJSON, tensors))
	for _, extra := range []string{"model.layers.0.self_attn.q_proj.bias",
		"model.layers.0.self_attn.q_norm.weight", "model.layers.2.mlp.up_proj.weight"} {
		tensors := checkpoint(tiny(), "F16")
		tensors[extra] = saved{"F16", []int{4}, []float32{1, 2, 3, 4}}
		_, err := Open(folderOf(t, tinyJSON, tensors))
		wantError(t, extra, err, oneFile, extra, "another architecture")
	}
}

func TestFolderErrors(t *testing.T) {
	const q, up = "model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.up_proj.weight"
	for _, c := range []struct {
		what   string
		change func(dir string, tensors map[string]saved)
		want   []string
	}{
		{"missing tensor", func(_ string, m map[string]saved) { delete(m, up) },
			[]string{up, "missing", "2 layers"}},
		{"missing head", func(_ string, m map[string]saved) { delete(m, "lm_head.weight") },
			[]string{"lm_head.weight", "tie_word_embeddings"}},
		{"fused", func(_ string, m map[string]saved) {
			delete(m, q)
			m["model.layers.1.self_attn.qkv_proj.weight"] = saved{"F16", []int{1}, []float32{1}}
		}, []string{q, "qkv_proj", "fused"}},
		{"wrong shape", func(_ string, m map[string]saved) {
			m[q] = saved{"F16", []int{12, 16}, m[q].values}
		}, []string{oneFile, q, "[16 12]", "[12 16]"}},
		{"norm as matrix", func(_ string, m map[string]saved) {
			m["model.norm.weight"] = saved{"F16", []int{1, 12}, m["model.norm.weight"].values}
		}, []string{"model.norm.weight", "[12]", "[1 12]"}},
		{"quantised", func(_ string, m map[string]saved) { m[q] = saved{"I8", m[q].shape, m[q].values} },
			[]string{oneFile, q, "I8", "quantised", "original checkpoint"}},
	} {
		tensors := checkpoint(tiny(), "F16")
		dir := t.TempDir()
		c.change(dir, tensors)
		write(t, filepath.Join(dir, "config.json"), []byte(tinyJSON))
		writeTensors(t, filepath.Join(dir, oneFile), tensors)
		_, err := Open(dir)
		wantError(t, c.what, err, append(c.want, dir)...)
	}

	dir := shardedFolder(t, tinyJSON, checkpoint(tiny(), "F16"))
	shard := filepath.Join(dir, "model-00002-of-00003.safetensors")
	whole, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	write(t, shard, whole[:len(whole)-1])
	_, err = Open(dir)
	wantError(t, "truncated shard", err, shard, "truncated", "download it again")
	write(t, shard, whole[:20])
	_, err = Open(dir)
	wantError(t, "truncated header", err, shard, "truncated", "20")
	if err := os.Remove(shard); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, "missing shard", err, dir, "missing", "all shards")
	copyFile(t, filepath.Join(dir, "model-00001-of-00003.safetensors"), shard)
	_, err = Open(dir)
	wantError(t, "another shard's content", err, "model-00001-of-00003.safetensors",
		"model-00002-of-00003.safetensors", "one download")
	for _, i := range []int{1, 2, 3} {
		if err := os.Remove(filepath.Join(dir, fmt.Sprintf("model-%05d-of-00003.safetensors",
			i))); err != nil {
			t.Fatal(err)
		}
	}
	_, err = Open(dir)
	wantError(t, "no weights", err, dir, oneFile, shardFiles)
	_, err = Open(t.TempDir())
	wantError(t, "no config", err, "config.json")
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, data)
}

// A value that fp16 can not hold ends the reading, and is named.
func TestFolderRefusesOverflow(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	const name = "model.layers.0.self_attn.k_proj.weight"
	for _, c := range []struct {
		dtype string
		value float32
		want  string
	}{
		{"BF16", 65536, "value 20 is 65536, beyond fp16"},
		{"F32", -65520, "value 20 is -65520, beyond fp16"}, {"F32", 65519, ""}, {"BF16", -65280, ""},
		{"F16", inf, "damaged"}, {"BF16", nan, "damaged"}, {"F32", inf, "damaged"},
		{"F16", nan, "damaged"}, {"F32", 1e-20, ""},
	} {
		tensors := checkpoint(tiny(), c.dtype)
		tensors[name].values[20] = c.value
		dir := folderOf(t, tinyJSON, tensors)
		f := open(t, dir)
		got := make([]cuda.Half, 32*12)
		err := f.Read(Tensor{QKV, 0}, got)
		if c.want == "" {
			if q := 16 * 12; err != nil || got[q+20] != cuda.HalfOf(float64(c.value)) {
				t.Errorf("%s %g: %v, error %v", c.dtype, c.value, got[q+20].Float(), err)
			}
			continue
		}
		wantError(t, c.dtype, err, dir, name, c.want)
	}
}

// A tensor larger than the conversion's chunk is read whole, and a file truncated after it was
// opened is noticed.
func TestFolderReadsInChunks(t *testing.T) {
	c := plain(llm.Model{Layers: 1, Hidden: 64, QHeads: 1, KVHeads: 1, HeadDim: 64,
		FFN: 2*chunkValues/64 + 3, Vocab: 3})
	c.Eps, c.Rope = hfEps, Rope{Theta: hfTheta}
	config := `{"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 64, "num_attention_heads": 1, "intermediate_size": 8195, "vocab_size": 3, "max_position_embeddings": 128}`
	if c.FFN != 8195 {
		t.Fatal("the test's config.json is for another chunk")
	}
	for _, dtype := range []string{"F16", "BF16", "F32"} {
		tensors := checkpoint(c, dtype)
		for _, s := range tensors {
			for i := range s.values {
				s.values[i] = float32(i % 251) // no chunk like another, and exact in every type
			}
		}
		dir := folderOf(t, config, tensors)
		f := open(t, dir)
		if bare(f.Config()) != c {
			t.Fatalf("config %+v, want %+v", f.Config(), c)
		}
		got := make([]cuda.Half, 2*c.FFN*c.Hidden)
		if err := f.Read(Tensor{GateUp, 0}, got); err != nil {
			t.Fatal(err)
		}
		want := slices.Concat(tensors["model.layers.0.mlp.gate_proj.weight"].values,
			tensors["model.layers.0.mlp.up_proj.weight"].values)
		for i := range want {
			if got[i].Float() != float64(want[i]) {
				t.Fatalf("%s: value %d is %g, want %g", dtype, i, got[i].Float(), want[i])
			}
		}
		if err := os.Truncate(filepath.Join(dir, oneFile), 1<<20); err != nil {
			t.Fatal(err)
		}
		wantError(t, "truncated", f.Read(Tensor{GateUp, 0}, got), oneFile, "mlp.gate_proj.weight",
			"the file ended")
	}
}

func TestReadChecksTheBuffer(t *testing.T) {
	r, err := NewRandom(tiny(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Source{r, open(t, folderOf(t, tinyJSON, checkpoint(tiny(), "F16")))} {
		wantError(t, "short", s.Read(Tensor{O, 1}, make([]cuda.Half, 5)), "layers.1.o", "[12][16]",
			"5 values")
		wantError(t, "layer", s.Read(Tensor{O, 2}, make([]cuda.Half, 192)), "layers.2.o", "2 layers")
		wantError(t, "kind", s.Read(Tensor{Kind: 99}, nil), "kind 99")
		norm := make([]cuda.Half, 12)
		if err := s.Read(Tensor{Norm, 7}, norm); err != nil || norm[0] == 0 {
			t.Errorf("the layer of a tensor outside layers matters: %v, %v", norm, err)
		}
	}
}
