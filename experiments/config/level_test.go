package config

import (
	"math"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/cost"
	"github.com/sparseserve/sparseserve/hw/llm"
)

// step is the decode step of a model on a card under an engine, in seconds.
func step(t *testing.T, model, gpu, engine string) float64 {
	t.Helper()
	m, err := llm.Load(model)
	if err != nil {
		t.Fatal(err)
	}
	p, err := hw.Load(gpu, engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := cost.ReferenceIteration(p, &m)
	if err != nil {
		t.Fatal(err)
	}
	return d.Seconds()
}

// Systems whose engines differ are held to the strictest bound, in any order; systems of one engine
// keep their factor, and a bound in seconds stays what it is.
func TestOneLevelForAllSystems(t *testing.T) {
	strict := 25 * min(step(t, "llama3.1-8b", "h100-80gb", "vllm-0.5"),
		step(t, "llama3.1-8b", "h100-80gb", "vllm-0.15"))
	two := []string{"[[systems]]\nname = \"a\"\nengine = \"vllm-0.5\"\n",
		"[[systems]]\nname = \"b\"\nengine = \"vllm-0.15\"\n"}
	head := "model = \"llama3.1-8b\"\ngpu = \"h100-80gb\"\n"
	for _, text := range []string{two[0] + two[1], two[1] + two[0]} {
		c := mustLoad(t, testkit.Write(t, "x.toml", head+text))[0]
		if math.Abs(c.SLO.TBTS-strict) > 1e-12 {
			t.Errorf("bound %g s, want the strictest, %g s:\n%s", c.SLO.TBTS, strict, text)
		}
	}
	c := mustLoad(t, testkit.Write(t, "x.toml", head+strings.Join(two, "")), "slo.tbt_factor=20")[0]
	if math.Abs(c.SLO.TBTS-strict*20/25) > 1e-12 || len(c.Warnings) > 0 {
		t.Errorf("20 decode steps are %g s, want %g s, and the factor is used: %q", c.SLO.TBTS,
			strict*20/25, c.Warnings)
	}
	c = mustLoad(t, testkit.Write(t, "x.toml", head+strings.Join(two, "")), "slo.tbt_s=0.3")[0]
	if c.SLO.TBTS != 0.3 {
		t.Errorf("bound %g s, want that of the configuration, 0.3 s", c.SLO.TBTS)
	}
	c = mustLoad(t, "", "model=llama3.1-8b", "gpu=h100-80gb")[0]
	if c.SLO.TBTS != 0 || c.SLO.TBTFactor != 25 {
		t.Errorf("one engine has a bound of %g s and factor %g", c.SLO.TBTS, c.SLO.TBTFactor)
	}
}

// Cards of a sweep are held to the strictest bound too; models each have their own.
func TestOneLevelForAllCards(t *testing.T) {
	text := "model = \"llama3.1-8b\"\n[system]\npreset = \"vllm-0.15\"\n[workload]\nrate = 1\n" +
		"[[axis]]\ngrid.gpu = [\"a100-80gb\", \"h100-80gb\"]\n" +
		"grid.model = [\"llama3.1-8b\", \"qwen3-14b\"]\n"
	s, err := LoadSweep(t.Context(), testkit.Write(t, "s.toml", text), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range s.Variants {
		c := v[0]
		want := 25 * min(step(t, c.Model, "a100-80gb", "vllm-0.15"),
			step(t, c.Model, "h100-80gb", "vllm-0.15"))
		if math.Abs(c.SLO.TBTS-want) > 1e-12 {
			t.Errorf("%s on %s: bound %g s, want %g s", c.Model, c.GPU, c.SLO.TBTS, want)
		}
	}
}

// Variants of a what-if are judged by the level of the configuration that they vary, whatever a
// knob does to the decode step; a factor that varies multiplies its step.
func TestVariantsHaveTheLevelOfTheirBase(t *testing.T) {
	own := 25 * step(t, "llama3.1-8b", "h100-80gb", "vllm-0.15")
	sets := []string{"model=llama3.1-8b", "gpu=h100-80gb", "system.preset=vllm-0.15",
		"workload.rate=1"}
	for _, c := range []struct {
		key, value string
		want       float64 // 0: the factor
	}{
		{"card.hbm_bandwidth", "6000", own}, {"card.hbm_bandwidth", "2000", own},
		{"system.tensor_parallel", "2", own}, {"gpu", "a100-80gb", own}, {"model", "qwen3-14b", own},
		{"system.engine", "vllm-0.5", own}, {"system.max_requests", "7", 0},
		{"slo.tbt_factor", "50", 0}, {"slo.tbt_s", "0.5", 0.5},
	} {
		variants := [][]Setting{{NewSetting(c.key, c.value)}, nil}
		s, err := LoadVaried("default", sets, variants, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Variants[0][0].SLO.TBTS; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s = %s: bound %g s, want %g s", c.key, c.value, got, c.want)
		}
		if got := s.Variants[1][0].SLO.TBTS; got != 0 {
			t.Errorf("%s: the configuration itself has a bound of %g s", c.key, got)
		}
	}
}

// A preset that brings no engine runs under the one that another brings, unless one is named.
func TestOneEngineForAllSystems(t *testing.T) {
	current := Presets()[0].Spec.Engine
	for _, c := range []struct {
		sets []string
		want []string
	}{
		{[]string{"system.preset=vllm,sparseserve"}, []string{current, current}},
		{[]string{"system.preset=vllm-0.15,sparseserve"}, []string{"vllm-0.15", "vllm-0.15"}},
		{[]string{"system.preset=sparseserve,vllm-0.15"}, []string{"vllm-0.15", "vllm-0.15"}},
		{[]string{"system.preset=vllm-0.15,sparseserve", "system.engine=vllm-0.5"},
			[]string{"vllm-0.5", "vllm-0.5"}},
	} {
		l := mustLoad(t, "", append(c.sets, "model=llama3.1-8b", "gpu=h100-80gb", "workload.rate=1")...)
		for i, p := range l {
			s := &p.System
			if s.Engine != c.want[i] {
				t.Errorf("%v: %s runs under %s, want %s", c.sets, s.Name, s.Engine, c.want[i])
			}
		}
	}
}
