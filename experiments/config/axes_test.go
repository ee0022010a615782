package config

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

func mustSweep(t *testing.T, path string, sets ...string) *Sweep {
	t.Helper()
	s, err := LoadSweep(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustPoints(t *testing.T, s *Sweep) []Point {
	t.Helper()
	points, err := s.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return points
}

// sweepOf writes a sweep file and expands it.
func sweepOf(t *testing.T, text string, sets ...string) []Point {
	t.Helper()
	return mustPoints(t, mustSweep(t, testkit.Write(t, "s.toml", text), sets...))
}

func TestAxes(t *testing.T) {
	one := "[workload]\nrate = 0.1\nrequests = 5\n[system]\npreset = \"sparseserve\"\n"
	for _, c := range []struct {
		name, text string
		want       []string // "window budget rate seed" of each point
	}{
		{"a plain configuration", one, []string{"12 2048 0.1 1"}},
		{"rates and seeds expand as ever", "seed = [1,2]\n[workload]\nrate = [0.1, " +
			"0.2]\n[system]\npreset = \"sparseserve\"",
			[]string{"12 2048 0.1 1", "12 2048 0.1 2", "12 2048 0.2 1", "12 2048 0.2 2"}},
		{"grid", one + "[[axis]]\ngrid.offload.working_set_steps = [4, " +
			"8]\ngrid.selection.budget_tokens = [1024, 512]",
			[]string{"4 1024 0.1 1", "4 512 0.1 1", "8 1024 0.1 1", "8 512 0.1 1"}},
		{"zip", one + "[[axis]]\nzip.offload.working_set_steps = [4, " +
			"8]\nzip.\"selection.budget_tokens\" = [1024, 512]",
			[]string{"4 1024 0.1 1", "8 512 0.1 1"}},
		{"list", one + "[[axis]]\nlist = [{ offload.working_set_steps = 4 }, { " +
			"offload.working_set_steps = 8, workload.rate = " +
			"0.3 }]",
			[]string{"4 2048 0.1 1", "8 2048 0.3 1"}},
		{"list of tables",
			one + "[[axis]]\n[[axis.list]]\noffload.working_set_steps = 4\n[[axis.list]]\nseed = 9",
			[]string{"4 2048 0.1 1", "12 2048 0.1 9"}},
		{"axes multiply", one + "[[axis]]\n[axis.grid]\nseed = [3, " +
			"4]\n[[axis]]\n[axis.zip.offload]\nworking_set_steps = [4, 8]",
			[]string{"4 2048 0.1 3", "8 2048 0.1 3", "4 2048 0.1 4", "8 2048 0.1 4"}},
		{"a value that is a list expands further", one + "[[axis]]\ngrid.seed = [[1, 2], [3]]",
			[]string{"12 2048 0.1 1", "12 2048 0.1 2", "12 2048 0.1 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, p := range sweepOf(t, c.text) {
				got = append(got, fmt.Sprintf("%d %d %g %d", p.System.Offload.WorkingSetSteps,
					p.System.Selection.BudgetTokens,
					p.Workload.Rate, p.Seed))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("points %q, want %q", got, c.want)
			}
		})
	}
}

func TestSweepLabels(t *testing.T) {
	points := sweepOf(t,
		"[[axis]]\ngrid.offload.working_set_steps = [4, 8]\ngrid.workload.rate = [0.1]",
		"system.preset=sparseserve")
	if len(points) != 2 || points[1].Label() != "sparseserve-0.1-s1 working_set_steps=8" ||
		points[1].Name != "sparseserve-0.1-s1" {
		t.Errorf("%d points, the last is %q named %q", len(points), points[len(points)-1].Label(),
			points[len(points)-1].Name)
	}
}

func TestSweepBase(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"sub/low.toml": "base = \"ablation\"\nseed = 7\n[workload]\nrequests = 11\n",
		"sub/top.toml": "base = \"low.toml\"\n[workload]\nrate = 0.7\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	points := mustPoints(t, mustSweep(t, "sub/top.toml"))
	if len(points) != 6 {
		t.Fatalf("%d points, want one for each of the ablation's systems", len(points))
	}
	if p := points[0]; p.Workload.Rate != 0.7 || p.Seed != 7 || p.Workload.Requests != 11 {
		t.Errorf("%g req/s, seed %d, %d requests", p.Workload.Rate, p.Seed, p.Workload.Requests)
	}
}

// TestAxisCounts: a grid makes the product of its lengths, a zip its length, a
// list one a table, and axes the product of all.
func TestAxisCounts(t *testing.T) {
	keys := []string{"workload.requests", "offload.working_set_steps", "prefill.chunk_tokens",
		"workload.burstiness", "slo.delay_s", "system.max_requests"}
	rapid.Check(t, func(rt *rapid.T) {
		var axes []axis
		want := 1
		for left := slices.Clone(keys); len(left) > 0; {
			n := rapid.IntRange(1, len(left)).Draw(rt, "keys")
			kind := rapid.SampledFrom(axisKinds).Draw(rt, "kind")
			var own []string
			own, left = left[:n], left[n:]
			length := rapid.IntRange(1, 3).Draw(rt, "length")
			tree, count := map[string]any{}, length
			values := make([]any, length)
			for i := range values {
				values[i] = int64(100 + i)
			}
			for _, k := range own {
				tree[k] = values
			}
			var kindValue any = tree
			switch kind {
			case "grid":
				count = 1
				for range own {
					count *= length
				}
			case "list":
				list := make([]any, length)
				for i := range list {
					list[i] = map[string]any{own[0]: int64(i)}
				}
				kindValue = list
			}
			doc := &document{name: "x"}
			doc.add("axis", []any{map[string]any{kind: kindValue}})
			got, err := parseAxes(doc)
			if err != nil {
				rt.Fatal(err)
			}
			if len(got[0].values) != count {
				rt.Fatalf("%s of %d keys with %d values makes %d, want %d", kind, n, length,
					len(got[0].values), count)
			}
			axes = append(axes, got[0])
			want *= count
		}
		if got := product(axes); len(got) != want {
			rt.Fatalf("%d combinations, want %d", len(got), want)
		}
	})
}

// TestHashIgnoresKeyOrder: lines of a configuration in any order, and keys set
// by file, flag or axis, make the same run.
func TestHashIgnoresKeyOrder(t *testing.T) {
	lines := []string{"offload.working_set_steps = 4", "selection.budget_tokens = 1024",
		"prefill.chunk_tokens = 512", "system.preset = \"sparseserve\""}
	want := sweepOf(t, "workload.rate = 0.1\n"+strings.Join(lines, "\n"))[0].Hash
	r := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if got := sweepOf(t, strings.Join(lines, "\n")+
			"\n[workload]\nrate = 0.1")[0].Hash; got != want {
			t.Errorf("hash %s, want %s", got, want)
		}
	}
	byAxis := sweepOf(t,
		"[[axis]]\ngrid.system.preset = [\"sparseserve\"]\ngrid.offload.working_set_steps = [4]",
		"workload.rate=0.1", "selection.budget_tokens=1024", "prefill.chunk_tokens=512")
	if byAxis[0].Hash != want {
		t.Errorf("hash by axis and flag %s, want %s", byAxis[0].Hash, want)
	}
}

// TestHashFollowsInputs: a file that the configuration names belongs to the
// run.
func TestHashFollowsInputs(t *testing.T) {
	header := "arrived_at,num_prefill_tokens,num_decode_tokens\n"
	path := testkit.Write(t, "trace.csv", header+"0,100,10\n1,100,10\n")
	hash := func() string {
		return mustPoints(t, mustSweep(t, "default", "workload.trace="+path,
			"workload.arrivals=trace"))[0].Hash
	}
	before := hash()
	if again := hash(); again != before {
		t.Errorf("hash %s, then %s of the same file", before, again)
	}
	if err := os.WriteFile(path, []byte(header+"0,100,10\n1,101,10\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if after := hash(); after == before {
		t.Error("another trace has the same hash")
	}
}

// TestBadSweeps compares every message with a golden file: one line that names
// place, key and value.
func TestBadSweeps(t *testing.T) {
	cases := []struct {
		name, text string
		sets       []string
	}{
		{"axis that names no key", "[[axis]]\n\ngrid.workload.rte = [0.1]\n", nil},
		{"in a zip", "[[axis]]\nzip.modl = [\"lwm-7b\"]\n", nil},
		{"in a list", "[[axis]]\nlist = [\n  { workload.requets = 3 },\n]\n", nil},
		{"in a list of tables", "[[axis]]\n[[axis.list]]\nseed = 1\n[[axis.list]]\nsed = 3\n", nil},
		{"axis over a table", "[[axis]]\ngrid.workload = [1]\n", nil},
		{"axis over names", "[[axis]]\ngrid.system.name = [\"a\"]\n", nil},
		{"unknown kind", "[[axis]]\ngird.seed = [1]\n", nil},
		{"too many points", gridOf(200), nil},
		{"too many points of lists", strings.Replace(gridOf(45), `"vllm"`, `["vllm", "vllm-s"]`, 1),
			nil},
		{"too many of one axis", strings.Replace(gridOf(400), "[[axis]]\ngrid.seed",
			"grid.seed", 1), nil},
		{"two kinds", "[[axis]]\ngrid.seed = [1]\nzip.model = [\"lwm-7b\"]\n", nil},
		{"axis of nothing", "seed = 1\n[[axis]]\n", nil},
		{"empty table", "[[axis]]\ngrid = {}\n", nil},
		{"empty list of values", "[[axis]]\ngrid.workload.rate = []\n", nil},
		{"empty list of points", "[[axis]]\nlist = []\n", nil},
		{"point of nothing", "[[axis]]\nlist = [{}]\n", nil},
		{"value where a list belongs", "[[axis]]\ngrid.workload.rate = 0.1\n", nil},
		{"zip of different lengths",
			"[[axis]]\nzip.workload.rate = [0.1, 0.2]\nzip.seed = [1, 2, 3]\n", nil},
		{"axis is a table", "[axis]\ngrid.seed = [1]\n", nil},
		{"key in two axes", "[[axis]]\ngrid.seed = [1]\n[[axis]]\ngrid.seed = [2]\n", nil},
		{"impossible value", "[[axis]]\n[axis.grid]\nworkload.rate = [0.1, -1]\n", nil},
		{"impossible value of a system", "[[axis]]\ngrid.offload.working_set_steps = [4, 0]\n", nil},
		{"wrong type", "[[axis]]\ngrid.offload.working_set_steps = [4, \"wide\"]\n", nil},
		{"unknown card", "[[axis]]\ngrid.gpu = [\"a100-40gb\", \"b100\"]\n", nil},
		{"value twice", "[[axis]]\ngrid.workload.rate = [0.1, 0.2, 0.1]\n", nil},
		{"point twice",
			"[system]\npreset = \"vllm\"\n[[axis]]\nlist = [{ seed = 1 }, { offload.working_set_steps " +
				"= 12 }]\n", nil},
		{"base that is not there", "base = \"defalt\"\n", nil},
		{"base of itself", "base = \"s.toml\"\n", nil},
		{"base that is no name", "base = 3\n", nil},
		{"misspelled", "[[axes]]\ngrid.seed = [1]\n", nil},
		{"flag for an axis", "[[axis]]\ngrid.workload.rate = [0.1]\n", []string{"workload.rate=0.2"}},
		{"flag for seeds", "[[axis]]\ngrid.seed = [1]\n", []string{"seed=[1,2]"}},
		{"unknown key of goodput", "[goodput]\nwidht = 0.1\n", nil},
		{"width of nothing", "[goodput]\nwidth = 0.0\n", nil},
		{"start above the end", "[goodput]\nstart = 2.0\nmax = 1.0\n", nil},
		{"flag of goodput", "", []string{"goodput.start=-1"}},
	}
	var all strings.Builder
	for _, c := range cases {
		s, err := LoadSweep(t.Context(), testkit.Write(t, "s.toml", c.text), c.sets)
		if err == nil {
			_, err = s.Points(t.Context())
		}
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		fmt.Fprintf(&all, "%s\n    %v\n", c.name, err)
	}
	testkit.Golden(t, "sweep-errors.txt", all.String())
}

func TestSweepKeysBelongToSweeps(t *testing.T) {
	_, err := Load(testkit.Write(t, "s.toml", "[[axis]]\ngrid.seed = [1]\n"), nil)
	if err == nil || !strings.Contains(err.Error(), "s.toml:1: axis: belongs in a file with axes") {
		t.Errorf("error %v, want one that names the commands that run it", err)
	}
}
