package config

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Warnings say where a key was set and what would use it, once for all systems, and only of keys
// that somebody set.
func TestKeysWithoutEffectAreWarnedOf(t *testing.T) {
	file := testkit.Write(t, "c.toml", "[slo]\nttft_stat = \"p50\"\ntbt_s = 1\n"+
		"[offload]\nworking_set_steps = 9\n[[systems]]\nname = \"a\"\npreset = \"vllm\"\n"+
		"selection.policy = \"quest\"\n"+
		"[[systems]]\nname = \"b\"\npreset = \"vllm-so\"\nselection.epsilon = 0.5\n"+
		"[card]\nhbm_size = 70\ncpu_cores = 8\n")
	const texts, lengths = "texts.jsonl", "lengths.csv" // beside c.toml
	for name, text := range map[string]string{
		texts:   `{"prompt": "one two three", "output_tokens": 5}`,
		lengths: "prompt_tokens,output_tokens\n10,5\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		path string
		sets []string
		want []string
	}{
		{"", nil, nil},
		{"", []string{"system.preset=[vllm, vllm-so]", "selection.policy=quest"}, nil},
		{"", []string{"system.preset=vllm", "selection.policy=quest"},
			[]string{`--set selection.policy=quest: has no effect in any run; it needs selection.on = ` +
				`true`}},
		{"", []string{"system.preset=vllm-s", "selection.policy=quest"},
			[]string{`--set selection.policy=quest: has no effect in any run; it needs scores that decide`}},
		{"", []string{"system.preset=vllm-s", "selection.policy=psa"}, nil},
		{"", []string{"system.preset=vllm", "prefix_cache.drive=pm9a3"},
			[]string{"--set prefix_cache.drive=pm9a3: has no effect in any run; it needs a prefix cache " +
				"on SSD"}},
		{"", []string{"system.preset=vllm", "card.link_h2d=50", "card.cpu_cores=8", "card.hbm_size=70"},
			[]string{"--set card.cpu_cores=8: has no effect in any run; it needs saves that the host",
				"--set card.link_h2d=50: has no effect in any run; it needs KV that moves over the"}},
		{"", []string{"system.preset=[vllm, vllm-so]", "card.link_h2d=50", "card.link_nominal=60"},
			nil},
		{"", []string{"system.preset=vllm-so", "card.link_nominal=60", "card.link_duplex_kernel=40"},
			[]string{"--set card.link_duplex_kernel=40: has no effect in any run; it needs kernels that",
				"--set card.link_nominal=60: has no effect in any run; it needs card.link_h2d or"}},
		{"", []string{"fleet.router=round-robin"},
			[]string{"--set fleet.router=round-robin: has no effect in any run; it needs several replicas"}},
		{"", []string{"workload.trace=" + texts, "workload.rate=1",
			"workload.tokenizer=llama2"}, nil},
		{"", []string{"workload.trace=" + lengths, "workload.rate=1", "workload.tokenizer=llama2"},
			[]string{"--set workload.tokenizer=llama2: has no effect in any run; it needs texts"}},
		{file, nil, []string{
			`c.toml:16: card.cpu_cores = 8: has no effect in any run; it needs saves that the host scatters`,
			`c.toml:2: slo.ttft_stat = "p50": has no effect in any run; it needs a bound (slo.ttft_s above 0)`,
			`c.toml:9: systems[0].selection.policy = "quest": has no effect in any run; it needs selection.on = true`,
			`c.toml:13: systems[1].selection.epsilon = 0.5: has no effect in any run; it needs selection.policy = "psa"`}},
	} {
		got := warn.Texts(mustLoad(t, c.path, c.sets...)[0].Warnings)
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s %q: %q, want %q", c.path, c.sets, got, c.want)
		}
		for _, v := range mustSweep(t, cmp.Or(c.path, "default"), c.sets...).Variants {
			if !slices.Equal(warn.Texts(v[0].Warnings), got) {
				t.Errorf("%s %q as a sweep: %q", c.path, c.sets, v[0].Warnings)
			}
		}
	}
	// what results keep spells every key out, and is no one's choice
	text, err := TOML(mustLoad(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := mustLoad(t, testkit.Rewrite(t, "kept.toml", string(text)))[0].Warnings; len(got) > 0 {
		t.Errorf("kept: %q", got)
	}
	axes := "[[axis]]\ngrid.system.preset = [\"vllm\", " +
		"\"vllm-so\"]\n[[axis]]\ngrid.offload.eviction = [\"fifo\", \"lru\"]\n"
	for _, v := range mustSweep(t, testkit.Rewrite(t, "s.toml", axes)).Variants {
		if len(v[0].Warnings) > 0 {
			t.Errorf("used by one of two presets: %q", v[0].Warnings)
		}
	}
}

// Tables that a command does not read are warned of: [goodput] and [plan] of a sweep, [metrics] and
// [output] of a comparison.
func TestTablesWithoutEffectAreWarnedOf(t *testing.T) {
	const none = ": has no effect in any run; it needs the command "
	file := testkit.Write(t, "s.toml", "[workload]\nrate = 1\n[system]\npreset = \"vllm\"\n"+
		"[slo]\nttft_s = 1\n[goodput]\nwidth = 0.1\n[plan]\nspare = 1\n")
	width, spare := "s.toml:8: goodput.width = 0.1"+none+"goodput, or whatif",
		"s.toml:10: plan.spare = 1"+none+"plan"
	flag := "--set goodput.max=9" + none + "goodput, or whatif"
	sweep := func(s *Sweep, err error) []string {
		if err != nil {
			t.Fatal(err)
		}
		return warn.Texts(s.Variants[0][0].Warnings)
	}
	compared, err := LoadServer("", []string{"model=llama2-7b", "gpu=h100-80gb",
		"metrics.warmup=share", "output.steps=true"}, false, "")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ got, want []string }{
		{sweep(LoadSweep(t.Context(), file, []string{"goodput.max=9"})), []string{flag, width, spare}},
		{sweep(LoadPlan(t.Context(), file, []string{"goodput.max=9"})), nil},
		{sweep(LoadVaried(file, nil, [][]Setting{nil}, true)), []string{spare}},
		{sweep(LoadVaried(file, nil, [][]Setting{nil}, false)), []string{spare}},
		{sweep(LoadSweep(t.Context(), "fig13a", nil)), nil},
		{warn.Texts(compared.Warnings),
			[]string{"--set metrics.warmup=share" + none + "simulate: compare",
				"--set output.steps=true" + none + "simulate: compare"}},
	} {
		if !slices.EqualFunc(c.got, c.want, strings.HasPrefix) {
			t.Errorf("%d: %q, want %q", i, c.got, c.want)
		}
	}
}

// An unknown name is an error where nothing uses it, too.
func TestUnknownNamesAreErrors(t *testing.T) {
	for _, set := range []string{"prefix_cache.drive=nope", "prefill.pattern=nope",
		"selection.policy=nope", "prefix_cache.eviction=nope", "prefix_cache.write=nope",
		"offload.load=nope", "fleet.router=nope", "slo.ttft_stat=nope", "longbench.output=nope",
		"longbench.datasets=nope", "workload.tokenizer=nope", "offload.eviction=nope",
		"metrics.warmup=nope", "offload.hot_release=nope", "selection.stop=nope",
		"selection.per=nope"} {
		_, err := Load("", []string{"system.preset=vllm", set})
		if err == nil || !strings.HasPrefix(err.Error(), "--set "+set+": ") {
			t.Errorf("%s: %v", set, err)
		}
	}
}

// A plan looks for the number of replicas, so its router has an effect.
func TestRouterOfAPlanHasAnEffect(t *testing.T) {
	path := testkit.Write(t, "buy.toml", "[workload]\nrate = 1\n[slo]\nttft_s = 1\n[fleet]\n"+
		"router = \"least-tokens\"\n[system]\npreset = \"vllm\"\n[plan]\n")
	s, err := LoadPlan(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Variants[0][0].Warnings; len(got) > 0 {
		t.Errorf("warnings %q", got)
	}
}

// A key of [system] that every table of [[systems]] sets for itself has no effect; one that a
// system has from there, or a flag sets over all, has one.
func TestKeysThatAllSystemsSet(t *testing.T) {
	own := "[[systems]]\nname = \"a\"\npreset = \"vllm-s\"\nselection.budget_tokens = 1024\n"
	for text, want := range map[string][]string{
		own: {"s.toml:2: selection.budget_tokens = 512: has no effect in any run; [[systems]] set"},
		own + "[[systems]]\nname = \"b\"\npreset = \"vllm-s\"\n": nil,
		own + "[[systems]]\nname = \"b\"\npreset = \"vllm\"\n": {
			`s.toml:2: selection.budget_tokens = 512: has no effect in any run; it needs sparse`},
	} {
		path := testkit.Write(t, "s.toml", "[selection]\nbudget_tokens = 512\n"+text)
		if got := warn.Texts(mustLoad(t, path)[0].Warnings); !slices.EqualFunc(got, want,
			strings.HasPrefix) {
			t.Errorf("%s%q, want %q", text, got, want)
		}
		if got := mustLoad(t, path, "selection.budget_tokens=256")[0].Warnings; len(got) > 0 {
			t.Errorf("%sa flag over all: %q", text, got)
		}
	}
}
