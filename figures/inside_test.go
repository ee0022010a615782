package figures

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The means over spans of time keep the area: what a line had over all steps.
func TestBinsKeepTheArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 900).Draw(t, "steps")
		start, length, values := make([]float64, n), make([]float64, n), make([]float64, n)
		now, want := rapid.Float64Range(0, 5).Draw(t, "begin"), 0.0
		for i := range start {
			start[i] = now + rapid.Float64Range(0, 1).Draw(t, "idle")
			length[i] = rapid.Float64Range(1e-3, 1).Draw(t, "step")
			values[i] = rapid.Float64Range(0, 100).Draw(t, "value")
			now = start[i] + length[i]
			want += values[i] * length[i]
		}
		c := binned(line{name: "x", of: func(row int) float64 { return values[row] }}, start, length)
		got := 0.0
		for _, q := range c.points {
			got += q.mean * (now - start[0]) / float64(len(c.points))
		}
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("area %g, want %g", got, want)
		}
	})
}

// Columns of memory and of links are drawn by their names, whatever others there are.
func TestMemoryColumns(t *testing.T) {
	for column, want := range map[string][3]string{
		"hbm_used_bytes":    {"HBM", "HBM used", "GiB"},
		"dram_gib":          {"DRAM", "DRAM", "GiB"},
		"h2d_bytes":         {"Link", "h2d", "GB/s"},
		"link_use":          {"Link", "link", "Share (%)"},
		"kv_used_blocks":    {"KV cache", "KV cache used", "Blocks"},
		"load_stall_s":      {"", "", ""},
		"prefill_seconds":   {"", "", ""},
		"blocks_loaded":     {"", "", ""},
		"dense_attention_s": {"", "", ""},
		"prefix_hit_tokens": {"", "", ""},

		"prefix_ssd_read_bytes": {"Cached prefixes moved", "SSD read", "GB/s"},
	} {
		if panel, name, unit, _ := memoryColumn(column); [3]string{panel, name, unit} != want {
			t.Errorf("%s: %q, %q, %q, want %q", column, panel, name, unit, want)
		}
	}
}

// What has been zero all the time, as a link that nothing crosses, has no panel.
func TestUnusedPanels(t *testing.T) {
	steps := &table{header: []string{"elapsed_s", "dram_bytes", "h2d_bytes", "prefix_loaded_bytes",
		"blocks_loaded"}, rows: [][]string{{"0.1", "0", "0", "0", "0"}, {"0.1", "0", "0", "9", "0"}}}
	var got []string
	for _, g := range linesOf(steps)[2:] {
		got = append(got, g.title)
	}
	if want := []string{"Cached prefixes moved"}; !slices.Equal(got, want) {
		t.Errorf("panels %q, want %q", got, want)
	}
}

// A tier that does nothing at all has no lines; one that does has all of its own.
func TestLinesOfTiers(t *testing.T) {
	header := []string{"elapsed_s", "gpu_busy_s", "h2d_busy_s", "d2h_busy_s", "prefix_saved_bytes",
		"prefix_ssd_read_bytes", "prefix_ssd_written_bytes"}
	for _, c := range []struct {
		row  []string
		want string
	}{
		{[]string{"1", "1", "0", "0", "0", "0", "0"}, "GPU"},
		{[]string{"1", "1", "0", "1", "7", "0", "0"}, "GPU, h2d, d2h, saved"},
		{[]string{"1", "1", "0", "1", "7", "0", "7"}, "GPU, h2d, d2h, saved, SSD read, SSD written"},
	} {
		var got []string
		for _, g := range linesOf(&table{header: header, rows: [][]string{c.row}})[2:] {
			for _, l := range g.lines {
				got = append(got, l.name)
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("lines %q, want %q", got, c.want)
		}
	}
}

// A folder whose runs have requests and steps has distributions and time lines, of the
// columns that are there; rejected requests have no times.
func TestInsideOfRuns(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"summary.json":           `[{"name":"a b","system":"vllm","model":"lwm-7b","gpu":"h200","seed":1,"rate":0.5,"requests":3,"completed":2}]`,
		"points/a b/config.toml": "[workload]\ntrace = \"longbench\"\n",
		"points/a b/requests.csv": "id,output_tokens,arrival_s,scheduled_s,first_token_s," +
			"last_token_s,rejected\n" +
			"1,11,0,1,2,3,\n2,1,1,4,5,5,\n3,9,1,,,,too long\n",
		"points/a b/steps.csv": "step,start_s,elapsed_s,decodes,prefills,waiting," +
			"blocks_loaded,hbm_used_bytes\n" +
			"0,0,1,0,1,2,0,1073741824\n1,3,1,2,0,0,7,2147483648\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := DrawFolders(t.Context(), dir, []string{dir}, "", "svg")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"cdf": {"time to first token,Share of requests,vLLM,2,1,0.5,", ",vLLM,4,1,1,",
			"time between tokens,Share of requests,vLLM,100,1,1,"},
		"timeline-a_b": {"Queue,Requests,waiting,", "Batch,Requests,decodes,", "HBM,GiB,HBM used,1,1,1,",
			"HBM,GiB,HBM used,3,1,2,", "KV blocks moved,Blocks a step,loaded,"},
	} {
		if !slices.Contains(files, filepath.Join(dir, file+".svg")) {
			t.Errorf("no %s among %v", file, files)
		}
		text, err := os.ReadFile(filepath.Join(dir, file+".csv"))
		for _, w := range want {
			if err != nil || !strings.Contains(string(text), w) {
				t.Errorf("%s: no %q in\n%s(%v)", file, w, text, err)
			}
		}
	}
	picture, err := os.ReadFile(filepath.Join(dir, "timeline-a_b.svg"))
	if err != nil || !strings.Contains(string(picture), "LWM-7B on H200, vLLM, longbench, 3 "+
		"requests, seed 1, 0.5 req/s") {
		t.Errorf("the caption does not say what was run (%v)", err)
	}
}

// A distribution rises from none to all of the requests, over their own values.
func TestCumulative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e3), 1, 700).Draw(t, "values")
		c := cumulative("s", slices.Clone(values))
		first, last := c.points[0], c.points[len(c.points)-1]
		if first.mean != 0 || first.x != slices.Min(values) && len(values) <= shareSteps ||
			last.mean != 1 || last.x != slices.Max(values) {
			t.Fatalf("from %+v to %+v", first, last)
		}
		for i, q := range c.points[1:] {
			below := 0
			for _, v := range values {
				if v <= q.x {
					below++
				}
			}
			if q.x < c.points[i].x || q.mean <= c.points[i].mean ||
				q.mean > float64(below)/float64(len(values)) {
				t.Fatalf("share %v at %v, %d of %d values are no larger", q.mean, q.x, below, len(values))
			}
		}
	})
}
