package cli

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
)

// internals are words about this program's own workings, which tell an owner of a file nothing.
var internals = regexp.MustCompile(`cannot unmarshal|strconv|makeslice|runtime error|[^.]\bjson:`)

// modelTOML is the shape of a model in a user's file.
const modelTOML = `name = "llama3-8b"
layers = 32
hidden = 4096
q_heads = 32
kv_heads = 8
head_dim = 128
ffn = 14336
vocab = 128256
max_context = 262144
tied_embeddings = false
qkv_bias = false
weight_bytes_each = 2
kv_bytes_each = 2
source = "an example"
`

// A file of any kind that users name, damaged in any way, is an error of one line that names it, or
// is read.
func TestDamagedFiles(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	good, commands := damageable(t, root)
	for _, file := range slices.Sorted(maps.Keys(commands)) {
		text := good[file]
		if text == "" {
			read, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = string(read)
		}
		half, third := len(text)/2, len(text)/3
		for _, d := range []struct{ name, text string }{
			{"empty", ""}, {"half", text[:half]}, {"two bytes less", text[:len(text)-2]},
			{"a zero byte", text[:third] + "\x00" + text[third:]},
			{"a brace", text[:half] + "{" + text[half:]},
			{"garbage first", "garbage\n" + text}, {"garbage behind", text + "}garbage"},
		} {
			writeFile(t, file, d.text)
			status, _, errs := runHere(t.Context(), run.NewSimulator().Run, commands[file]...)
			own := strings.HasPrefix(errs, "sparseserve: ") && strings.Count(errs, "\n") == 1
			switch {
			case status == exitFailed && own && !internals.MatchString(errs) &&
				(strings.Contains(errs, filepath.Base(file)) || strings.HasPrefix(errs, "sparseserve: R: ")):
			case status == exitOK && !strings.Contains(errs, "sparseserve: "):
			default:
				t.Errorf("%s, %s: status %d, %s", file, d.name, status, errs)
			}
		}
		writeFile(t, file, text)
	}
}

// damageable makes files that are good, and says which command reads each. Texts that are not
// returned are in the files.
func damageable(t *testing.T, root string) (texts map[string]string,
	commands map[string][]string) {
	small := []string{"--set", "workload.requests=2", "--set", "workload.rate=1", "--set",
		"system.preset=vllm"}
	simulate := func(sets ...string) []string {
		args := append([]string{"simulate", "--json"}, small...)
		for _, set := range sets {
			args = append(args, "--set", set)
		}
		return args
	}
	compare := func(record string) []string {
		return []string{"compare", record, "--set", "model=llama3-8b", "--set", "gpu=h200"}
	}
	card, err := hw.LoadCard("h100-80gb")
	engine, e := os.ReadFile(filepath.Join(root, "hw/engines/vllm-0.15.toml"))
	kernels, e3 := os.ReadFile(filepath.Join(root, "hw/kernels/hopper-fa3.toml"))
	if err := errors.Join(err, e, e3); err != nil {
		t.Fatal(err)
	}
	card.Kernels.FA3 = "kernels.toml"
	if err := card.Write("card2.toml"); err != nil {
		t.Fatal(err)
	}
	trace := "arrived_s,prompt_tokens,output_tokens\n0,900,3\n1,40,2\n"
	texts = map[string]string{
		"config.toml": tiny, "engine.toml": string(engine), "model.toml": modelTOML,
		"kernels.toml": string(kernels), "model.json": goodModel, "prices.toml": goodPrices,
		"vllm.json": `{"input_lens": [40, 40], "output_lens": [2, 2], "ttfts": [0.1, 0.1],
"itls": [[0.1], [0.1]], "start_times": [0, 1], "errors": ["", ""]}`,
		"perf.json": `[{"start_time": 0, "end_time": 0.2, "error": null, "info": {"input_tokens": 40,
"output_tokens": 2, "output_token_times": [0.1, 0.2]}}]`,
		"heads.json": `[{"0": ["vertical_and_slash", 1000, 6096, 336]}]`, "trace.csv": trace,
		"trace.csv.gz": pack(trace), "record.csv": goodRecord,
		"talks.json": `[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]`,
		"moon.jsonl": `{"timestamp": 0, "input_length": 700, "output_length": 2, ` +
			`"hash_ids": [0, 1]}` + "\n",
		"sel.bin": "PK\x05\x06" + strings.Repeat("\x00", 16) + "\x0d\x00" + `{"layers": 1}`,
	}
	commands = map[string][]string{
		"config.toml": append([]string{"simulate", "config.toml", "--json"}, small...),
		"engine.toml": simulate("system.engine=engine.toml"),
		"model.toml":  simulate("model=model.toml"), "model.json": simulate("model=model.json"),
		"kernels.toml": simulate("gpu=card2.toml", "system.engine=vllm-0.15"),
		"prices.toml":  {"list", "prices", "prices.toml"},
		"heads.json": simulate("prefill.attention=minference",
			"prefill.pattern=heads.json"),
		"trace.csv":    simulate("workload.trace=trace.csv"),
		"trace.csv.gz": simulate("workload.trace=trace.csv.gz"),
		"talks.json":   {"trace", "describe", "talks.json"},
		"moon.jsonl":   {"trace", "describe", "moon.jsonl"},
		"record.csv":   compare("record.csv"), "vllm.json": compare("vllm.json"),
		"perf.json": compare("perf.json"),
		"sel.bin":   simulate("system.preset=sparseserve", "selection.recording=sel.bin"),
	}
	for name, text := range texts {
		writeFile(t, name, text)
	}
	writeFile(t, "s.toml", tiny+"[[axis]]\ngrid.workload.rate = [1, 2]\n")
	for _, args := range [][]string{
		append([]string{"simulate", "--out", "R"}, small...), {"simulate", "s.toml", "--out", "W"},
		append([]string{"goodput", "--out", "P", "--set", "goodput.width=1"}, small...),
	} {
		runner := pretend
		if args[0] == "simulate" {
			runner = run.NewSimulator().Run
		}
		if status, _, errs := runHere(t.Context(), runner, args...); status != exitOK {
			t.Fatal(errs)
		}
	}
	for file, args := range map[string][]string{
		"R/summary.json": {"report", "R"}, "R/config.toml": {"report", "R", "--format", "png"},
		"R/index.json":      append(simulate(), "--out", "R"),
		"W/index.json":      {"report", "W", "--format", "png"},
		"W/runs/packed.zip": {"report", "W", "--format", "png"}, "P/goodput.json": {"report", "P"},
	} {
		commands[file] = args
	}
	return texts, commands
}
