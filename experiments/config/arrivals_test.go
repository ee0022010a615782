package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/traces"
)

// What keys of [workload] say by themselves, in a file and in flags.
func TestImpliedWorkload(t *testing.T) {
	lengths := []string{"workload.prompt_lengths=lognormal(8192, 0.5)",
		"workload.output_lengths=fixed(200)"}
	for _, c := range []struct {
		text            string
		sets            []string
		trace, arrivals string
		requests        int
		clients         []int
		points          string // of the first system
	}{
		{"", append(lengths, "workload.rate=2"), "synthetic", "poisson", 300, []int{0}, "vllm-2-s1"},
		{"", append(lengths, "workload.concurrency=16"), "synthetic", "closed", 300, []int{16},
			"vllm-c16-s1"},
		{"[workload]\nconcurrency = [1, 8]\nthink_s = 2\n", nil, "longbench", "closed", 300,
			[]int{1, 8},
			"vllm-c1-s1 vllm-c8-s1"},
		{"[workload]\nstages = [[60, 1], [30, 2.5]]\n", nil, "longbench", "poisson", 0, []int{0},
			"vllm-stages-s1"},
		{"", []string{"workload.stages=[[60, 1], [30, 2.5]]", "workload.requests=40"}, "longbench",
			"poisson", 40, []int{0}, "vllm-stages-s1"},
		{"", []string{"workload.trace=own.csv", "workload.concurrency=2"}, "own.csv", "closed", 0,
			[]int{2}, "vllm-c2-s1"},
		{"", []string{"workload.trace=own.csv", "workload.stages=[[10, 1]]", "workload.arrivals=fixed"},
			"own.csv", "fixed", 0, []int{0}, "vllm-stages-s1"},
	} {
		path := testkit.Write(t, "exp.toml", c.text)
		testkit.Rewrite(t, "own.csv", ownTrace)
		cfg, err := Load(path, append(c.sets, "system.preset=vllm"))
		if err != nil {
			t.Errorf("%q %q: %v", c.text, c.sets, err)
			continue
		}
		w := cfg[0].Workload
		var points []string
		clients := each(cfg, func(p Point) int { return p.Workload.Concurrency })
		for _, p := range cfg {
			points = append(points, p.Name)
			if p.Workload.Concurrency > 0 && p.Workload.Rate != 0 {
				t.Errorf("%s: a closed loop with a rate of %g", p.Name, p.Workload.Rate)
			}
		}
		if w.Trace != c.trace || w.Arrivals != c.arrivals || w.Requests != c.requests ||
			!slices.Equal(clients, c.clients) || strings.Join(points, " ") != c.points {
			t.Errorf("%q %q: trace %s, arrivals %s, %d requests, clients %v, points %s", c.text, c.sets,
				w.Trace, w.Arrivals, w.Requests, clients, points)
		}
		// What is written out loads to the same.
		for _, p := range cfg {
			text, err := p.TOML()
			if err != nil {
				t.Fatal(err)
			}
			again, err := LoadPoint(testkit.Rewrite(t, "point.toml", string(text)))
			if err != nil {
				t.Errorf("%s: %v\n%s", p.Name, err, text)
				continue
			}
			a, _ := NewHasher().Hash(&p)
			if b, _ := NewHasher().Hash(&again); a == b && again.Name != "" {
				continue
			}
			t.Errorf("%s loads as %+v", p.Name, again)
		}
	}
}

// Configurations that do not use the keys do not have them: their results keep their names.
func TestKeysOfOtherWorkloadsAreNotWritten(t *testing.T) {
	cfg, err := Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := TOML(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"prompt_lengths", "output_lengths", "concurrency", "think_s",
		"stages"} {
		if strings.Contains(string(text), "\n"+key+" = ") {
			t.Errorf("%s is written:\n%s", key, text)
		}
	}
}

// Lengths, clients and stages are axes of a sweep.
func TestAxesOfWorkloads(t *testing.T) {
	s := mustSweep(t, testkit.Write(t, "s.toml", `
[workload]
output_lengths = "fixed(20)"
[system]
preset = "vllm"
[[axis]]
grid.workload.prompt_lengths = ["fixed(100)", "uniform(10, 200)"]
grid.workload.concurrency = [1, 4]
`))
	points, err := s.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var labels []string
	for _, p := range points {
		labels = append(labels, p.Label())
	}
	if got, want := strings.Join(labels, "; "), "vllm-c1-s1 prompt_lengths=fixed(100); vllm-c4-s1 "+
		"prompt_lengths=fixed(100); "+
		"vllm-c1-s1 prompt_lengths=uniform(10, 200); vllm-c4-s1 prompt_lengths=uniform(10, 200)"; got !=
		want {
		t.Errorf("%s, want %s", got, want)
	}
	s = mustSweep(t, testkit.Write(t, "s.toml", "[[axis]]\ngrid.workload.stages = [[[60, 1]], [[60, "+
		"1], [60, 2]]]\n"))
	if n := len(s.Variants); n != 2 || len(s.Variants[1][0].Workload.Stages) != 2 {
		t.Errorf("%d variants of stages: %+v", n, s.Variants[n-1][0].Workload)
	}
}

// Every key of [workload] that can be useless somewhere is refused there, never ignored.
func TestUselessKeysAreRefused(t *testing.T) {
	arrivals := map[string][]string{
		"poisson": {"workload.rate=1"}, "gamma": {"workload.rate=1"}, "fixed": {"workload.rate=1"},
		"closed": {"workload.concurrency=2"}, "trace": {"workload.trace=own.csv"},
		"stages": {"workload.stages=[[60, 1]]"},
	}
	keys := map[string]struct {
		value string
		used  []string
	}{
		"workload.rate":        {"2", []string{"poisson", "gamma", "fixed"}},
		"workload.burstiness":  {"2", []string{"gamma"}},
		"workload.speed":       {"2", []string{"trace"}},
		"workload.concurrency": {"3", []string{"closed"}},
		"workload.think_s":     {"3", []string{"closed"}},
		"workload.stages":      {"[[30, 2]]", []string{"poisson", "gamma", "fixed", "stages"}},
	}
	for name, sets := range arrivals {
		for key, k := range keys {
			testkit.Write(t, "own.csv", ownTrace)
			if name == "poisson" || name == "gamma" || name == "fixed" {
				if key == "workload.stages" {
					continue // with their rate it is refused
				}
			}
			all := slices.Clone(sets)
			if name != "stages" {
				all = append(all, "workload.arrivals="+name)
			}
			_, err := Load("", append(all, key+"="+k.value))
			switch used := slices.Contains(k.used, name); {
			case used && err != nil:
				t.Errorf("%s with %s: %v", key, name, err)
			case !used && (err == nil || !strings.Contains(err.Error(), "; leave one out")):
				t.Errorf("%s with %s: %v", key, name, err)
			}
		}
	}
	field, _ := reflect.TypeFor[traces.Spec]().FieldByName("Arrivals")
	if !slices.Contains(strings.Fields(field.Tag.Get("values")), "closed") {
		t.Error("arrivals closed is no choice")
	}
}
