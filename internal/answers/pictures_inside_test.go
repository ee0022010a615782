package answers

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/doc"
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
		s := steps{startColumn: start, elapsedColumn: length, "decodes": values}
		got := 0.0
		for _, c := range s.charts() {
			for _, p := range c.Lines[0].Points {
				got += p.Y * (now - start[0]) / float64(len(c.Lines[0].Points))
			}
		}
		if math.Abs(got-want) > 1e-6*(1+want) {
			t.Fatalf("area %g, want %g", got, want)
		}
	})
}

// stepsOf are steps by the text of their table.
func stepsOf(t *testing.T, table string) steps {
	t.Helper()
	dir := t.TempDir()
	testkit.Rewrite(t, filepath.Join(dir, "steps.csv"), table)
	s := steps{}
	if found, err := eachRow(dir, "steps.csv", s.add); !found || err != nil {
		t.Fatal(found, err)
	}
	return s
}

// What has been zero all the time, as a link that nothing crosses, has no line.
func TestUnusedLines(t *testing.T) {
	const head = "start_s,elapsed_s,waiting,decodes,prefills,"
	for _, c := range []struct{ header, row, want string }{
		{"dram_bytes,h2d_bytes,prefix_loaded_bytes,blocks_loaded", "0,0,9,0",
			"Cached prefixes moved: loads"},
		{"gpu_busy_s,h2d_busy_s,d2h_busy_s,prefix_saved_bytes,prefix_ssd_read_bytes,blocks_loaded",
			"1,0,0,0,0,3", "Busy: GPU; KV blocks moved: loads"},
		{"gpu_busy_s,h2d_busy_s,d2h_busy_s,prefix_saved_bytes,prefix_ssd_read_bytes", "1,0,1,7,0",
			"Busy: GPU, saves; Cached prefixes moved: saves"},
		{"gpu_busy_s,prefix_ssd_read_bytes,prefix_ssd_written_bytes", "1,0,7",
			"Busy: GPU; Cached prefixes moved: SSD written"},
	} {
		var got []string
		for _, chart := range stepsOf(t, head+c.header+"\n0,1,0,0,0,"+c.row+"\n").charts() {
			var names []string
			for _, l := range chart.Lines {
				names = append(names, l.Name)
			}
			got = append(got, chart.Title+": "+strings.Join(names, ", "))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("drew %q, want %q", got, c.want)
		}
	}
}

// A folder whose runs have requests and steps has distributions and time lines, of the columns that
// are there; rejected requests have no times. A run that is alone has its queue, and the latencies
// of its requests over their arrival.
func TestInsideOfRuns(t *testing.T) {
	dir := t.TempDir()
	point := filepath.Join(dir, "runs", "a b")
	if err := os.MkdirAll(point, 0o755); err != nil {
		t.Fatal(err)
	}
	testkit.Rewrite(t, filepath.Join(dir, run.IndexFile),
		`{"runs":[{"label":"a b","folder":"runs/a b"}]}`)
	testkit.Rewrite(t, filepath.Join(dir, "summary.json"), `[{"name":"a b","system":"vllm",
		"model":"lwm-7b","gpu":"h200","seed":1,"rate":0.5,"requests":3,"completed":2}]`)
	// The first waits 2 s and runs 6 s; the second runs from 4 s on; the third is rejected.
	testkit.Rewrite(t, filepath.Join(point, "requests.csv"), "id,output_tokens,arrival_s,scheduled_s,"+
		"first_token_s,last_token_s,rejected\n1,4,0,2,3,8,\n2,1,4,4,4.5,4.5,\n3,5,6,,,,too long\n")
	testkit.Rewrite(t, filepath.Join(point, "steps.csv"), "step,start_s,elapsed_s,decodes,prefills,"+
		"waiting,blocks_loaded,hbm_kv_bytes\n0,0,1,0,1,2,0,1073741824\n1,3,1,2,0,0,7,2147483648\n")
	d := made(t, dir)
	of := map[string]*doc.Chart{}
	for _, f := range d.Figures {
		for _, c := range f.Charts {
			of[f.Name+": "+c.Title] = c
		}
	}
	requests := of["run: Requests"]
	for i, seconds := range []float64{2, 6.5} { // the mean number of requests x the time
		sum := 0.0
		for _, p := range requests.Lines[i].Points {
			sum += p.Y * 8 / timelineBins
		}
		if math.Abs(sum-seconds) > 1e-9 {
			t.Errorf("%s: %g request-seconds, want %g", requests.Lines[i].Name, sum, seconds)
		}
	}
	ttft := of["run: Time to first token, by arrival"].Lines
	tbt := of["run: Mean time between tokens of a request, by arrival"].Lines
	if len(ttft) != 2 || ttft[0].Points[0].Y != 3 || ttft[0].Points[1].X != 4 ||
		ttft[1].Name != "rejected" || ttft[1].Points[0].X != 6 {
		t.Errorf("TTFT %+v", ttft)
	}
	if len(tbt[0].Points) != 1 || math.Abs(tbt[0].Points[0].Y-5000./3) > 1e-9 {
		t.Errorf("TBT %+v", tbt)
	}
	share := of["cdf: 0.5 req/s: time to first token"].Lines[0].Points
	if share[1].X != 0.5 || share[1].Y != 50 || share[2].X != 3 || share[2].Y != 100 {
		t.Errorf("distribution %+v", share)
	}
	hbm := of["timeline-a_b: HBM"].Lines[0].Points
	if hbm[0].Y != 1 || hbm[1].Y != 1.5 || of["timeline-a_b: KV blocks moved"] == nil {
		t.Errorf("HBM %+v", hbm)
	}
	last := d.Figures[len(d.Figures)-1]
	const want = "This run: vLLM, 0.5 req/s, seed 1."
	if last.Caption != want {
		t.Errorf("caption %q, want %q", last.Caption, want)
	}
}

// A wrong cell and a missing column are errors that name them.
func TestDamagedTables(t *testing.T) {
	for text, want := range map[string]string{
		"start_s,elapsed_s,waiting,decodes,prefills\n0,x,0,0,0\n": `elapsed_s = "x": want a number`,
		"start_s,elapsed_s,waiting,decodes\n0,0,0,0\n":            `no column "prefills"`,
	} {
		dir := t.TempDir()
		testkit.Rewrite(t, filepath.Join(dir, "steps.csv"), text)
		s := steps{}
		if _, err := eachRow(dir, "steps.csv", s.add); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one with %q", err, want)
		}
	}
}

// A distribution rises from none to all of the requests, over their own values.
func TestCumulative(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e3), 1, 700).Draw(t, "values")
		points := cumulative(slices.Clone(values))
		first, last := points[0], points[len(points)-1]
		if first.Y != 0 || first.X != slices.Min(values) || last.Y != 100 ||
			last.X != slices.Max(values) {
			t.Fatalf("from %+v to %+v", first, last)
		}
		for i, p := range points[1:] {
			below := 0
			for _, v := range values {
				if v <= p.X {
					below++
				}
			}
			if p.X < points[i].X || p.Y <= points[i].Y || p.Y > 100*float64(below)/float64(len(values)) {
				t.Fatalf("share %v at %v, %d of %d values are no larger", p.Y, p.X, below, len(values))
			}
		}
	})
}

// Charts of one quantity have one axis of it.
func TestDistributionsShareTheirAxis(t *testing.T) {
	of := func(x string, low, high float64) *doc.Chart {
		return &doc.Chart{X: x, Lines: []doc.Line{{Points: []doc.Point{{X: low}, {X: high}}}}}
	}
	charts := []*doc.Chart{of("TTFT", 1, 2), of("TBT", 1, 2), of("TTFT", 15, 30), of("TBT", 1, 3)}
	ofShares(charts)
	if first, last := charts[0].XEnds, charts[2].XEnds; !slices.Equal(first, last) || first[1] < 30 ||
		!charts[0].LogX {
		t.Errorf("TTFT from %v to %v", first, last)
	}
	if tbt := charts[1].XEnds; tbt[1] > 20 || charts[1].LogX {
		t.Errorf("TBT on the axis of TTFT: %v", tbt)
	}
}
