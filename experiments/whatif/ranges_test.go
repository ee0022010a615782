package whatif

import (
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/config"
)

func TestParseRange(t *testing.T) {
	for _, c := range []struct {
		flag  string
		steps int
		want  []string
		err   string
	}{
		{"link=0.5..4", 4, []string{"0.5", "1", "2", "4"}, ""},
		{"link=0.5..4", 2, []string{"0.5", "4"}, ""},
		{"budget=512..4096", 4, []string{"512", "1024", "2048", "4096"}, ""},
		{"window=1..3", 5, []string{"1", "2", "3"}, ""},
		{"scores.dispersion=0..1", 3, nil, "no such key"},
		{"workload.prefix_hit=0..1", 3, []string{"0", "0.5", "1"}, ""},
		{"budget=1024,2048", 9, []string{"1024", "2048"}, ""},
		{"offload.eviction=lru,fifo", 9, []string{"lru", "fifo"}, ""},
		{"workload.prompt_lengths=uniform(1, 2),fixed(3)", 9, []string{"uniform(1, 2)", "fixed(3)"}, ""},
		{"card.hbm_size=40..80", 2, []string{"40", "80"}, ""},
		{"link", 2, nil, "want NAME=LOW..HIGH"},
		{"link=", 2, nil, "want NAME=LOW..HIGH"},
		{"lnk=1..2", 2, nil, "no such knob (did you mean \"link\"?)"},
		{"link=2..1", 2, nil, "the lower first"},
		{"link=-1..1", 2, nil, "factors above 0"},
		{"link=a,b", 2, nil, "a is no number"},
		{"link=1,1", 2, nil, "listed twice"},
		{"link=nan..2", 2, nil, "the lower first"},
		{"offload.eviction=lru..fifo", 2, nil, "list its values"},
		{"seed=1,2", 2, nil, "--set seed"},
	} {
		r, err := ParseRange(c.flag)
		switch {
		case err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.flag, err, c.err)
		case err == nil && c.err != "":
			t.Errorf("%s: no error, want %q", c.flag, c.err)
		case err == nil && !slices.Equal(r.At(c.steps), c.want):
			t.Errorf("%s in %d: %v, want %v", c.flag, c.steps, r.At(c.steps), c.want)
		}
	}
}

// Each default knob changes some system, and all of the built-in experiment are accepted.
func TestDefaults(t *testing.T) {
	cfg, err := config.Load("", []string{"system.preset=sparseserve"})
	if err != nil {
		t.Fatal(err)
	}
	all := Defaults(cfg)
	if len(all) < 10 {
		t.Errorf("only %d knobs", len(all))
	}
	for i := range all {
		for _, value := range all[i].At(2) {
			settings, err := all[i].Knob.settings(cfg, value)
			if err == nil {
				_, err = config.LoadVaried("default", []string{"system.preset=sparseserve"},
					[][]config.Setting{settings}, true)
			}
			if err != nil {
				t.Errorf("%s = %s: %v", all[i].Knob.Name, value, err)
			}
		}
	}
	dense, err := config.Load("", []string{"system.preset=vllm"})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Defaults(dense) {
		if slices.Contains([]string{"link", "dram", "prefix_dram", "budget", "window"},
			r.Knob.Name) {
			t.Errorf("%s varies of a system that does not use it", r.Knob.Name)
		}
	}
}

// A prefix cache below HBM is behind the host link and has a size of its own.
func TestDefaultsOfPrefixTiers(t *testing.T) {
	for _, c := range []struct {
		size string
		want []string
	}{
		{"prefix_cache.dram_gib=100", []string{"link", "prefix_dram"}},
		{"prefix_cache.ssd_gib=100", []string{"link"}},
		{"prefix_cache.dram_gib=0", nil},
	} {
		cfg, err := config.Load("", []string{"system.preset=vllm-0.15", "prefix_cache.mode=vllm",
			c.size})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range Defaults(cfg) {
			if strings.Contains("link dram prefix_dram", r.Knob.Name) {
				got = append(got, r.Knob.Name)
			}
			if r.Knob.Name != "prefix_dram" {
				continue
			}
			settings, err := r.Knob.settings(cfg, "0.5")
			if err != nil || len(settings) != 1 || settings[0].Key != "prefix_cache.dram_gib" ||
				config.Show(settings[0].Value) != "50" {
				t.Errorf("half of it sets %v, %v", settings, err)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.size, got, c.want)
		}
	}
}

// A factor multiplies the card's value, changes of the configuration included.
func TestFactorsAreOfTheConfiguration(t *testing.T) {
	sets := []string{"card.link_h2d=10", "card.link_duplex_copy=15"}
	cfg, err := config.Load("", sets)
	if err != nil {
		t.Fatal(err)
	}
	link, err := KnobNamed("link")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := link.settings(cfg, "2")
	if err != nil {
		t.Fatal(err)
	}
	if got := config.SettingsLabel(settings); got != " link_h2d=20 link_d2h=50 link_duplex_copy=30" {
		t.Errorf("%q", got)
	}
}
