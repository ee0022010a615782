package config

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// Warnings say where a key was set and what would use it, once for all systems, and only of keys
// that somebody set.
func TestKeysWithoutEffectAreWarnedOf(t *testing.T) {
	file := testkit.Write(t, "c.toml", "[slo]\nttft_stat = \"p50\"\ntbt_s = 1\n"+
		"[system]\nwindow = 9\n[[systems]]\nname = \"a\"\npreset = \"vllm\"\nselection = \"quest\"\n"+
		"[[systems]]\nname = \"b\"\npreset = \"vllm-so\"\nepsilon = 0.5\n")
	for _, c := range []struct {
		path string
		sets []string
		want []string
	}{
		{"", nil, nil},
		{"", []string{"system.preset=[vllm, vllm-so]", "system.selection=quest"}, nil},
		{"", []string{"system.preset=vllm", "system.selection=quest"},
			[]string{`--set system.selection=quest: has no effect in any run; it needs system.attention = "sparse"`}},
		{"", []string{"system.preset=vllm-s", "system.selection=quest"},
			[]string{`--set system.selection=quest: has no effect in any run; it needs scores that decide`}},
		{"", []string{"system.preset=vllm-s", "system.selection=psa"}, nil},
		{"", []string{"system.preset=vllm", "system.prefix_drive=pm9a3"},
			[]string{"--set system.prefix_drive=pm9a3: has no effect in any run; it needs a prefix cache " +
				"on SSD"}},
		{"", []string{"fleet.router=round-robin"},
			[]string{"--set fleet.router=round-robin: has no effect in any run; it needs several replicas"}},
		{file, nil, []string{
			`c.toml:2: slo.ttft_stat = "p50": has no effect in any run; it needs a bound (slo.ttft_s above 0)`,
			`c.toml:9: systems[0].selection = "quest": has no effect in any run; it needs system.attention = "sparse"`,
			`c.toml:13: systems[1].epsilon = 0.5: has no effect in any run; it needs system.selection = "psa"`}},
	} {
		got := mustLoad(t, c.path, c.sets...).Unused
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s %q: %q, want %q", c.path, c.sets, got, c.want)
		}
		for _, v := range mustSweep(t, cmp.Or(c.path, "default"), c.sets...).Variants {
			if !slices.Equal(v.Config.Unused, got) {
				t.Errorf("%s %q as a sweep: %q", c.path, c.sets, v.Config.Unused)
			}
		}
	}
	// what results keep spells every key out, and is no one's choice
	text, err := mustLoad(t, "").TOML()
	if err != nil {
		t.Fatal(err)
	}
	if got := mustLoad(t, testkit.Rewrite(t, "kept.toml", string(text))).Unused; len(got) > 0 {
		t.Errorf("kept: %q", got)
	}
	axes := "[[axis]]\ngrid.system.preset = [\"vllm\", " +
		"\"vllm-so\"]\n[[axis]]\ngrid.system.eviction = [\"fifo\", \"lru\"]\n"
	for _, v := range mustSweep(t, testkit.Rewrite(t, "s.toml", axes)).Variants {
		if len(v.Config.Unused) > 0 {
			t.Errorf("used by one of two presets: %q", v.Config.Unused)
		}
	}
}

// An unknown name is an error where nothing uses it, too.
func TestUnknownNamesAreErrors(t *testing.T) {
	for _, set := range []string{"system.prefix_drive=nope", "system.prefill_pattern=nope",
		"system.selection=nope", "system.prefix_eviction=nope", "system.prefix_write=nope",
		"system.load_engine=nope", "fleet.router=nope", "slo.ttft_stat=nope", "workload.output=nope",
		"workload.datasets=nope", "workload.tokenizer=nope", "system.eviction=nope",
		"metrics.warmup=nope", "system.hot_release=nope", "system.psa_stop=nope",
		"system.select_per=nope"} {
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
	s, err := LoadPlan(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Variants[0].Config.Unused; len(got) > 0 {
		t.Errorf("warnings %q", got)
	}
}
