package cli

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func TestPatterns(t *testing.T) {
	status, out, errs := invoke(t, nil, "list", "patterns", "llama3-8b-262k")
	if status != 0 || errs != "" {
		t.Errorf("status %d, stderr %q", status, errs)
	}
	testkit.Golden(t, "patterns-describe.txt", out)
}

// A simulation with a pattern file, and what is said of files that do not fit: one line with
// file, layer and head.
func TestPatternFiles(t *testing.T) {
	model, err := filepath.Abs("../../experiments/testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	layer := `{"0": ["vertical_and_slash", 10, 20, 1], "1": ["stream_llm", 64, 64, 1]}`
	write("good.json", "["+layer+", "+layer+"]")
	write("short.json", "["+layer+"]")
	write("wide.json", `[{"0": ["block_sparse", 1, 0, 0]}, {"0": ["block_sparse", 1, 0, 0]}]`)
	write("unknown.json", `[`+layer+`, {"0": ["diagonal", 1, 1, 0], "1": ["stream_llm", 64, 64, 1]}]`)
	write(
		"zero.json",
		`[`+layer+`, {"0": ["stream_llm", 64, 64, 1], "1": ["vertical_and_slash", 0, 20, 1]}]`,
	)
	args := []string{"simulate", "--json", "--set", "model=" + model, "--set", "gpu=a100-80gb",
		"--set", "workload.requests=3", "--set", "workload.rate=1",
		"--set", "system.preset=vllm-minference", "--set", "prefill.over_length=truncate"}
	for file, want := range map[string]string{
		"good.json":    "",
		"short.json":   `short.json: layers: has 1, the model has 2`,
		"wide.json":    `wide.json: layer 0: has 1 heads, the model has 2 query heads`,
		"unknown.json": `unknown.json: layer 1, head 0: unknown pattern "diagonal"`,
		"zero.json":    `zero.json: layer 1, head 1: vertical-slash with a first size of 0`,
		"none.json":    `no such mix or file: none.json; mixes are `,
	} {
		status, _, errs := runHere(t.Context(), run.NewSimulator().Run,
			append(args, "--set", "prefill.pattern="+file)...)
		if want == "" {
			if status != 0 {
				t.Errorf("%s: status %d, %s", file, status, errs)
			}
			continue
		}
		if status != 1 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 ||
			!strings.Contains(errs, "prefill.pattern") {
			t.Errorf("%s: status %d, %q; want %q", file, status, errs, want)
		}
	}
}

// The search of a model's heads reads what a live device computes as it reads the reference's: the
// same candidates are found but where two of them are as good.
func TestPatternsSearchLive(t *testing.T) {
	model := safetensors(t)
	t.Chdir(t.TempDir())
	found := map[string]string{}
	for _, live := range []string{"", "--live=reference"} {
		args := []string{
			"paper",
			"patterns",
			"--weights",
			model,
			"--tokens",
			"512",
			"--out",
			"found.json",
		}
		if live != "" {
			args = append(args, live)
		}
		status, out, errs := invoke(t, nil, args...)
		if status != 0 || errs != "" {
			t.Fatalf("%s: status %d, stderr %q", live, status, errs)
		}
		table, err := config.ReadPatterns("found.json")
		if err != nil || len(table) != 1 || len(table[0]) != 2 {
			t.Fatalf("%v: %v", err, table)
		}
		for _, a := range table[0] {
			found[live] += fmt.Sprintf("%v %.2f\n", a.Head, a.Score)
		}
		if !strings.Contains(out, "found.json: written") {
			t.Errorf("%s", out)
		}
	}
	if found[""] != found["--live=reference"] {
		t.Errorf("exactly\n%slive\n%s", found[""], found["--live=reference"])
	}
}

// safetensors writes the tiny model with one layer and random weights, and returns its folder.
func safetensors(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../experiments/testdata/tiny/config.json")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	header, data, r := map[string]any{}, []byte(nil), rand.New(rand.NewPCG(1, 2))
	shapes := map[string][]int{
		"model.embed_tokens.weight": {64, 64}, "lm_head.weight": {64, 64}, "model.norm.weight": {64},
		"model.layers.0.input_layernorm.weight": {
			64,
		}, "model.layers.0.post_attention_layernorm.weight": {64},
		"model.layers.0.self_attn.q_proj.weight": {
			128,
			64,
		}, "model.layers.0.self_attn.k_proj.weight": {128, 64},
		"model.layers.0.self_attn.v_proj.weight": {
			128,
			64,
		}, "model.layers.0.self_attn.o_proj.weight": {64, 128},
		"model.layers.0.mlp.gate_proj.weight": {64, 64}, "model.layers.0.mlp.up_proj.weight": {64, 64},
		"model.layers.0.mlp.down_proj.weight": {64, 64},
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		shape := shapes[name]
		n, from := 1, len(data)
		for _, d := range shape {
			n *= d
		}
		for range n {
			data = binary.LittleEndian.AppendUint16(data, uint16(cuda.HalfOf(0.5+0.1*r.NormFloat64())))
		}
		header[name] = map[string]any{
			"dtype":        "F16",
			"shape":        shape,
			"data_offsets": []int{from, len(data)},
		}
	}
	head, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(head))), append(head, data...)...)
	config := strings.Replace(string(text), `"num_hidden_layers": 2`, `"num_hidden_layers": 1`, 1)
	for name, content := range map[string][]byte{"config.json": []byte(config),
		"model.safetensors": file} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}
