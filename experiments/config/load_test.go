package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/kv"
)

func mustLoad(t *testing.T, path string, sets ...string) []Point {
	t.Helper()
	c, err := Load(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// each lists the distinct values of runs.
func each[T comparable](runs []Point, of func(Point) T) (all []T) {
	for _, p := range runs {
		if v := of(p); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

func systemNames(runs []Point) []string {
	return each(runs, func(p Point) string { return p.System.Name })
}

func ratesOf(runs []Point) []float64 {
	return each(runs, func(p Point) float64 { return p.Workload.Rate })
}

func seedsOf(runs []Point) []uint64 { return each(runs, func(p Point) uint64 { return p.Seed }) }

func TestDefault(t *testing.T) {
	runs := mustLoad(t, "")
	c := runs[0]
	if c.Model != "lwm-7b" || c.GPU != "a100-40gb" || !slices.Equal(seedsOf(runs), []uint64{1}) {
		t.Errorf("default is %s on %s, seeds %v", c.Model, c.GPU, seedsOf(runs))
	}
	if want := []float64{0.05, 0.1, 0.15, 0.2, 0.25}; !slices.Equal(ratesOf(runs), want) {
		t.Errorf("rates %v, want %v", ratesOf(runs), want)
	}
	if want := []string{"vllm", "vllm-s", "vllm-so", "sparseserve"}; !slices.Equal(
		systemNames(runs), want) {
		t.Errorf("systems %v, want %v", systemNames(runs), want)
	}
	if c.Workload.Requests < 300 || len(c.Workload.Datasets) != 10 {
		t.Errorf("workload %+v, want the paper's ten sets and 300 requests", c.Workload)
	}
	for _, p := range runs {
		s := &p.System
		if s.Prefill.MaxPromptTokens != 32768 || s.Prefill.OverLength != "truncate" {
			t.Errorf("%s: prompts beyond %d are %sd, want the paper's limit", s.Name,
				s.Prefill.MaxPromptTokens,
				s.Prefill.OverLength)
		}
	}
}

func TestExperimentsLoad(t *testing.T) {
	for _, e := range experiments.BuiltIn() {
		if e.About() == "" || e.Usage() == "" {
			t.Errorf("experiment %q says of itself %q, and is run by %q", e.Name, e.About(), e.Usage())
		}
		if e.Command == "" {
			if _, err := LoadSweep(t.Context(), e.Name, nil); err == nil || err.Error() != e.Name+
				": serves no requests; "+e.Usage()+" runs it" {
				t.Errorf("%s: error %v", e.Name, err)
			}
			continue
		}
		s := mustSweep(t, e.Name)
		if points, err := s.Points(t.Context()); s.Name != e.Name || err != nil || len(points) == 0 {
			t.Errorf("experiment %q is called %q and has %d points (%v)", e.Name, s.Name, len(points),
				err)
		}
		if !e.Paper {
			mustLoad(t, e.Name)
		}
	}
}

// TestPresets holds the systems to the SparseServe paper, section 4, and to PSA's
// sections 4 and 5.
func TestPresets(t *testing.T) {
	want := []struct {
		name, attention, load, save, prefill string
		block                                int
		offload, control                     bool
	}{
		{"vllm", "full", "memcpy", "memcpy", "chunked", 16, false, false},
		{"vllm-0.15", "full", "memcpy", "memcpy", "chunked", 16, false, false},
		{"sglang", "full", "memcpy", "memcpy", "chunked", 1, false, false},
		{"vllm-s", "sparse", "memcpy", "memcpy", "chunked", 32, false, false},
		{"vllm-so", "sparse", "memcpy", "memcpy", "chunked", 32, true, false},
		{"vllm-so-ft", "sparse", "flash", "flash", "chunked", 32, true, false},
		{"vllm-so-ft-wc", "sparse", "flash", "flash", "chunked", 32, true, true},
		{"sparseserve", "sparse", "flash", "flash", "layer", 32, true, true},
		{"vllm-sparse", "sparse", "memcpy", "memcpy", "chunked", 32, true, false},
		{"vllm-psa", "sparse", "memcpy", "memcpy", "chunked", 32, true, false},
		{"sparseserve-psa", "sparse", "flash", "flash", "layer", 32, true, true},
		{"vllm-minference", "full", "memcpy", "memcpy", "chunked", 16, false, false},
		{"sparseserve-minference", "sparse", "flash", "flash", "layer", 32, true, true},
		{"dsa", "sparse", "memcpy", "memcpy", "chunked", 16, false, false},
		{"hisparse", "sparse", "swap", "flash", "chunked", 16, true, false},
		{"hisparse-hybrid", "sparse", "swap", "flash", "chunked", 16, true, false},
	}
	presets := Presets()
	if len(presets) != len(want) {
		t.Fatalf("%d presets, want %d", len(presets), len(want))
	}
	for i, w := range want {
		s := presets[i].Spec
		if s.Name != w.name || s.Selection.On != (w.attention == "sparse") ||
			s.Offload.Load != w.load ||
			s.Offload.Save != w.save ||
			s.Prefill.Split != w.prefill || s.BlockTokens != w.block || s.Offload.On != w.offload ||
			s.Offload.BatchControl != w.control {
			t.Errorf("%+v, want %+v", s, w)
		}
		chunk := 2048
		if w.name == "sglang" {
			chunk = 8192
		}
		if s.Selection.BudgetTokens != 2048 || s.Prefill.ChunkTokens != chunk ||
			s.Prefill.MaxInject != 0 || s.Offload.WorkingSetSteps != 12 {
			t.Errorf("%s: budget %d, chunk %d, inject %d, window %d", s.Name, s.Selection.BudgetTokens,
				s.Prefill.ChunkTokens,
				s.Prefill.MaxInject, s.Offload.WorkingSetSteps)
		}
		if sparse := strings.HasSuffix(w.name, "-minference"); sparse != s.SparsePrefill() {
			t.Errorf("%s prefills by %s", s.Name, s.Prefill.Attention)
		}
		if psa := strings.HasSuffix(w.name, "-psa"); psa != (s.Selection.Policy == "psa") {
			t.Errorf("%s selects by %s", s.Name, s.Selection.Policy)
		}
		if full := w.name == "vllm-sparse"; full != (s.Selection.DenseLayers == 2) {
			t.Errorf("%s: %d layers in full", s.Name, s.Selection.DenseLayers)
		}
		if err := checkSystem(&Point{System: s}); err != nil {
			t.Error(err)
		}
		if presets[i].About == "" {
			t.Errorf("%s says nothing about itself", w.name)
		}
	}
}

func TestSystemsOverPresets(t *testing.T) {
	for _, c := range []struct {
		name, text string
		sets       []string
		systems    []string
		windows    []int
	}{
		{"override reaches every preset", "[system]\npreset=[\"vllm-s\",\"sparseserve\"]\n" +
			"[offload]\nworking_set_steps=4", nil,
			[]string{"vllm-s", "sparseserve"}, []int{4, 4}},
		{"one preset as a string", "[system]\npreset=\"sparseserve\"", nil, []string{"sparseserve"},
			[]int{12}},
		{"tables of one's own stand alone",
			"[[systems]]\nname=\"wide\"\npreset=\"sparseserve\"\noffload.working_set_steps=16", nil,
			[]string{"wide"}, []int{16}},
		{"or with presets",
			"[system]\npreset=\"vllm\"\n[[systems]]\nname=\"wide\"\noffload.working_set_steps=16", nil,
			[]string{"vllm", "wide"}, []int{12, 16}},
		{"a table beats [system]",
			"[offload]\nworking_set_steps=4\n[[systems]]\nname=\"a\"\n[[systems]]\n" +
				"name=\"b\"\noffload.working_set_steps=16", nil,
			[]string{"a", "b"}, []int{4, 16}},
		{"a flag beats both",
			"[offload]\nworking_set_steps=4\n[[systems]]\nname=\"b\"\noffload.working_set_steps=16",
			[]string{"offload.working_set_steps=2"},
			[]string{"b"}, []int{2}},
		{"a flag picks systems",
			"[[systems]]\nname=\"a\"\noffload.working_set_steps=7\n[[systems]]\nname=\"b\"",
			[]string{"system.preset=[a, vllm]"},
			[]string{"a", "vllm"}, []int{7, 12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mustLoad(t, testkit.Write(t, "c.toml", c.text), c.sets...)
			var windows []int
			for i, p := range got {
				if i == 0 || p.System.Name != got[i-1].System.Name {
					windows = append(windows, p.System.Offload.WorkingSetSteps)
				}
			}
			if !slices.Equal(systemNames(got), c.systems) || !slices.Equal(windows, c.windows) {
				t.Errorf("%v with windows %v, want %v with %v", systemNames(got), windows, c.systems,
					c.windows)
			}
		})
	}
}

func TestSet(t *testing.T) {
	runs := mustLoad(t, "", `model=llama3-8b`, `gpu="h200"`, `workload.rate=[0.1, 0.2]`, `seed=[3,4]`,
		`longbench.datasets=[qasper,"lcc"]`, `offload.on=true`, `system.dram_gib=64`,
		`slo.delay_stat=p50`,
		`workload.requests=1e3`, `output.steps=true`)
	c := runs[0]
	if c.Model != "llama3-8b" || c.GPU != "h200" ||
		!slices.Equal(ratesOf(runs), []float64{0.1, 0.2}) ||
		!slices.Equal(seedsOf(runs), []uint64{3, 4}) {
		t.Errorf("got %s on %s at %v with %v", c.Model, c.GPU, ratesOf(runs), seedsOf(runs))
	}
	if !slices.Equal(c.Workload.Datasets, []string{"qasper", "lcc"}) || c.Workload.Requests != 1000 {
		t.Errorf("workload is %+v", c.Workload)
	}
	for _, p := range runs {
		s := &p.System
		if !s.Offload.On || s.DRAMGiB != 64 {
			t.Errorf("%s: offload %v, DRAM %g", s.Name, s.Offload.On, s.DRAMGiB)
		}
	}
	if c.SLO.DelayStat != "p50" || !c.Output.Steps {
		t.Errorf("slo %+v, output %+v", c.SLO, c.Output)
	}
	if got := ratesOf(mustLoad(t, "", "workload.rate=0.3", "workload.rate=0.4")); !slices.Equal(got,
		[]float64{0.4}) {
		t.Errorf("rates %v, want those of the last flag", got)
	}
}

// Keys of a system's parts may stand below [system] too.
func TestPartsBelowSystem(t *testing.T) {
	path := testkit.Write(t, "c.toml", "[system]\npreset = \"vllm\"\nprefix_cache.mode = \"vllm\"\n")
	for _, p := range mustLoad(t, path, "system.prefix_cache.write_hits=3") {
		if c := &p.System.PrefixCache; c.Mode != "vllm" || c.WriteHits != 3 {
			t.Errorf("prefix cache %+v", c)
		}
	}
}

// A list in a flag needs no brackets, and a name in quotes may hold a comma.
func TestSetListsByCommas(t *testing.T) {
	c := mustLoad(t, "", "system.preset=vllm, vllm-s", "workload.rate=0.1,0.2", "seed=3,4",
		"fleet.replicas=1,2", `longbench.datasets="qasper",lcc`)
	if !slices.Equal(systemNames(c), []string{"vllm", "vllm-s"}) ||
		!slices.Equal(ratesOf(c), []float64{0.1, 0.2}) || !slices.Equal(seedsOf(c), []uint64{3, 4}) ||
		!slices.Equal(each(c, func(p Point) int { return p.Fleet.Replicas }), []int{1, 2}) ||
		!slices.Equal(c[0].Workload.Datasets, []string{"qasper", "lcc"}) {
		t.Errorf("got %v at %v with %v, sets %v", systemNames(c), ratesOf(c), seedsOf(c),
			c[0].Workload.Datasets)
	}
	clients := func(p Point) int { return p.Workload.Concurrency }
	if got := each(mustLoad(t, "", "workload.concurrency=2,8"), clients); !slices.Equal(got,
		[]int{2, 8}) {
		t.Errorf("clients %v", got)
	}
	var list []string
	field := reflect.ValueOf(&list).Elem()
	if err := decodeValue(field, "k", "", flagText(`"a,b",c`)); err != nil ||
		!slices.Equal(list, []string{"a,b", "c"}) {
		t.Errorf("got %q, %v", list, err)
	}
	_, err := Load(testkit.Write(t, "x.toml", "[system]\npreset = \"vllm,vllm-s\"\n"), nil)
	if err == nil || !strings.Contains(err.Error(), `a list in a file is ["vllm", "vllm-s"]`) {
		t.Errorf("a list in one string of a file: %v", err)
	}
}

func TestReplayedTimesHaveNoRate(t *testing.T) {
	path := testkit.Write(t, "trace.csv",
		"arrived_at,num_prefill_tokens,num_decode_tokens\n0,100,10\n1,100,10\n")
	points := mustLoad(t, "", "workload.trace="+path, "workload.arrivals=trace")
	if len(points) != len(systemNames(points)) || points[0].Name != "vllm-trace-s1" {
		t.Errorf("%d points, the first is %s; want one a system, named for the trace", len(points),
			points[0].Name)
	}
}

// TestResolvedLoadsAgain: the configuration that is next to results gives the
// same points, whatever it was made from.
func TestResolvedLoadsAgain(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		var sets []string
		set := func(key string, gen *rapid.Generator[string]) {
			if rapid.Bool().Draw(r, "set "+key) {
				sets = append(sets, key+"="+gen.Draw(r, key))
			}
		}
		one := func(values ...string) *rapid.Generator[string] { return rapid.SampledFrom(values) }
		set("workload.rate", one("0.1", "[0.1,0.25]", "1e-3", "3"))
		set("seed", one("7", "[1,2,3]", "0"))
		set("longbench.datasets", one("qasper", "[lcc,vcsum]"))
		set("workload.arrivals", one("poisson", "gamma", "fixed"))
		set("workload.output_scale", one("1.7", "2"))
		set("system.preset", one("vllm", "[sparseserve,vllm-so-ft]"))
		set("offload.working_set_steps", one("1", "16"))
		set("system.kv_gib", one("0.1", "12.5"))
		set("offload.eviction", one(kv.EvictionNames()...))
		set("prefill.max_inject", one("65536", "1000000000000"))
		set("slo.tbt_s", one("0.75", "1"))
		set("output.steps", one("true", "false"))
		c, err := Load("", sets)
		if err != nil {
			r.Fatal(err)
		}
		text, err := TOML(c)
		if err != nil {
			r.Fatal(err)
		}
		path := filepath.Join(dir, "default.toml")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			r.Fatal(err)
		}
		again, err := Load(path, nil)
		if err != nil {
			r.Fatalf("%v in\n%s", err, text)
		}
		for i := range c { // what was chosen is not kept
			c[i].Warnings = nil
		}
		if !reflect.DeepEqual(c, again) {
			r.Fatalf("%+v\nloaded again is\n%+v", c, again)
		}
	})
}

// TestEveryKnobIsAKey: no field of a system is out of a configuration's reach.
func TestEveryKnobIsAKey(t *testing.T) {
	var s sim.Spec
	fields := reflect.TypeFor[sim.Spec]().NumField()
	for _, part := range []any{s.Selection, s.Offload, s.Prefill, s.PrefixCache, s.Speculation,
		s.Simulation} {
		fields += reflect.TypeOf(part).NumField() - 1
	}
	if got := len(FieldsOf(&s)); got != fields {
		t.Errorf("%d of %d fields have a key", got, fields)
	}
	text, err := TOML(mustLoad(t, "", "system.preset=sparseserve"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keysOf(&s) {
		part, name, nested := strings.Cut(key, ".")
		_, table, _ := strings.Cut(string(text), "\n[[systems]]\n")
		if nested {
			_, table, _ = strings.Cut(table, "\n[systems."+part+"]\n")
		} else {
			name = key
		}
		table, _, _ = strings.Cut("\n"+table, "\n[")
		if !strings.Contains(table, "\n"+name+" = ") {
			t.Errorf("the resolved configuration lacks %s", key)
		}
	}
}

// A folder of results does not hide the experiment of its name.
func TestLoadBesideFolderOfItsName(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir(experiments.Default, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSweep(t.Context(), experiments.Default, nil); err != nil {
		t.Error(err)
	}
	if err := os.Mkdir("fig15", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadSweep(t.Context(), "fig15", nil); err != nil {
		t.Error(err)
	}
}
