package hw

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw/builtin"
)

func TestProfilesRoundTrip(t *testing.T) {
	if n := len(CardNames()); n != 22 {
		t.Errorf("want 22 profiles, got %v", CardNames())
	}
	for _, name := range CardNames() {
		p := mustProfile(t, name)
		if p.Name != name {
			t.Errorf("%s calls itself %s", name, p.Name)
		}
		p.Provenance = Provenance{Date: "2026-01-02", Device: "card", Driver: "1", CUDA: "2",
			Notes: []string{"a \"note\"\nof two lines"}}
		p.Fits = []Fit{{Model: "load.flash", Samples: 40, R2: 0.99, MaxError: 0.03,
			Flags: []string{"few small sizes"}}}
		path := filepath.Join(t.TempDir(), "card.toml")
		if err := p.Write(path, engineOf(p.Name)); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path, FilesOf(path).Engine, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, p) {
			t.Errorf("%s changes when written and read", name)
		}
	}
}

func TestWriteFileRefusesInvalid(t *testing.T) {
	p := mustProfile(t, "h200")
	p.Linears[1].Value = -1
	path := filepath.Join(t.TempDir(), "card.toml")
	wantError(t, "negative time", p.Write(path, engineOf(p.Name)), "linears[1].value", "-1")
	if _, err := os.Stat(path); err == nil {
		t.Error("an invalid profile was written")
	}
}

// Each edit of a good file is one mistake; the error names its place.
func TestFileErrors(t *testing.T) {
	const card, kernels, engine = "cards/a100-40gb.toml", "kernels/ampere.toml",
		"engines/vllm-0.5.toml"
	for _, c := range []struct {
		name, file, old, new string
		want                 []string // besides file and the line of the edit
	}{
		{"unknown key", engine, "layer_sync =", "layer_sink =",
			[]string{"host.layer_sink: unknown key", `"layer_sync"`}},
		{"unknown table", kernels, "[scoring]", "[scorings]",
			[]string{"scorings: unknown key", `"scoring"`}},
		{"unknown key of a row", kernels, "tokens = 1024,", "token = 1024,",
			[]string{"linears[2].token: unknown key", `"tokens"`}},
		{"unknown key of a figure", kernels, `value = 0.95, unit`, `value = 0.95, units`,
			[]string{"save.contention.units", `"unit"`}},
		{"wrong dimension", engine, `{ value = 2.5, unit = "ms"`, `{ value = 2.5, unit = "GB/s"`,
			[]string{"host.step.unit", "s|ms|us|ns", `"GB/s"`}},
		{"wrong unit of a row", kernels, `tokens = 4096, value = 7.492, unit = "ms"`,
			`tokens = 4096, value = 7.492, unit = "hours"`, []string{"linears[3].unit", `"hours"`}},
		{"wrong type", card, `{ value = 312,`, `{ value = "fast",`,
			[]string{"gpu.peak_fp16.value", "want a number, got fast"}},
		{"wrong type in a row", kernels, "tokens = 128, value", `tokens = "128", value`,
			[]string{"linears[1].tokens", "want an integer"}},
		{"table for an array", kernels, "linears = [", "linears = { a = 1 }\n[x]\ny = [",
			[]string{"linears", "want an array"}},
		{"negative", card, `{ value = 1555,`, `{ value = -1555,`,
			[]string{"gpu.hbm_bandwidth.value", "-1555"}},
		{"not a number", card, `{ value = 1555,`, `{ value = nan,`,
			[]string{"gpu.hbm_bandwidth.value", "NaN"}},
		{"infinite", card, `{ value = 1555,`, `{ value = inf,`,
			[]string{"gpu.hbm_bandwidth.value", "Inf"}},
		{"no provenance", engine, `unit = "ms", from = "derived", source = """serving`,
			`unit = "ms", from = "guessed", source = """serving`, []string{"host.step.from", `"guessed"`}},
		{"falling time", kernels, "tokens = 4096, value = 7.492", "tokens = 4096, value = 0.492",
			[]string{"linears[3].value", "never cost less"}},
		{"tokens out of order", kernels, "tokens = 1024", "tokens = 64",
			[]string{"linears[2].tokens", "64 after 128"}},
		{"unknown shape", kernels, `shape = "llama2-7b", tokens = 128, value = 0.352`,
			`shape = "llama2", tokens = 128, value = 0.352`, []string{"linears[1].shape", `"llama2-7b"`}},
		{"pool out of order", kernels, "pool_gib = 64", "pool_gib = 0.5",
			[]string{"load.flash[1].pool_gib", "0.5"}},
		{"threads out of order", kernels, "threads = 16", "threads = 8",
			[]string{"save.scatter[2].threads", "8"}},
		{"share of 1", kernels, "value = 0.95", "value = 1",
			[]string{"save.contention.value", "below 1"}},
		{"missing figure", engine, "step = { value", "request = { value",
			[]string{"host.step: missing figure (time)"}},
		{"graph sizes out of order", engine, "[host]", "[graphs]\ntokens = [1, 4, 2]\n[host]",
			[]string{"graphs.tokens", "got 2"}},
		{"a copy faster than its link", card, `{ value = 25.1,`, `{ value = 100,`,
			[]string{"link.h2d", "got 100 GB/s, nominal is 32 GB/s"}},
		{"no kernels", card, `fa2 = "ampere"`, `fa2 = ""`,
			[]string{"kernels: want a table [kernels] with sparseserve and fa2", "ampere-fa2"}},
		{"no card", kernels, `measured_on = "a100-80gb"`, `measured_on = ""`, []string{"measured_on"}},
		{"syntax", card, "title =", "title", []string{}},
	} {
		good := embedded(t, c.file)
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%s: %q is not in %s", c.name, c.old, c.file)
		}
		path := filepath.Join(t.TempDir(), "edited.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var err error
		switch c.file {
		case card:
			_, err = LoadCard(path)
		case kernels:
			_, err = loadKernels(path, "")
		default:
			_, err = LoadEngine(path)
		}
		place := "edited.toml"
		if !strings.Contains(c.name, "graph") && c.name != "missing figure" {
			place = fmt.Sprintf("edited.toml:%d", 1+strings.Count(good[:strings.Index(good, c.old)], "\n"))
		}
		if c.name == "no kernels" {
			place = "edited.toml" // the table's line
		}
		wantError(t, c.name, err, append(c.want, place)...)
	}
}

// builtIn lists the built-in files.
func builtIn() (all []string) {
	for folder, names := range map[string][]string{"cards/": CardNames(),
		"kernels/": builtin.Names(kernelFiles, "kernels"),
		"engines/": EngineNames()} {
		for _, name := range names {
			all = append(all, folder+name+".toml")
		}
	}
	return all
}

// embedded returns the text of a built-in file.
func embedded(t testing.TB, file string) string {
	t.Helper()
	for _, files := range []embed.FS{cardFiles, kernelFiles, engineFiles} {
		if data, err := files.ReadFile(file); err == nil {
			return string(data)
		}
	}
	t.Fatalf("no file %s", file)
	return ""
}

func TestLoadProfileErrors(t *testing.T) {
	_, err := Load("a100-40gbb", "vllm-0.5", nil)
	wantError(t, "misspelt", err, `unknown gpu "a100-40gbb"`, `did you mean "a100-40gb"`, "h200")
	_, err = Load("./no-such.toml", "vllm-0.5", nil)
	wantError(t, "missing", err, "no-such.toml")
}

func TestEveryFigureHasASource(t *testing.T) {
	for _, name := range builtIn() {
		data := embedded(t, name)
		values, sources := strings.Count(data, "value ="), strings.Count(data, "source = \"")
		if values > sources {
			t.Errorf("%s: %d values, %d sources", name, values, sources)
		}
	}
}
