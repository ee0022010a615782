package figures

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPaperGolden draws each figure of the paper from small fixed results.
func TestPaperGolden(t *testing.T) {
	results := filepath.Join("testdata", "paper")
	dir := t.TempDir()
	files, err := DrawPaper(t.Context(), dir, results, nil)
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[string]bool{}
	for _, f := range files {
		drawn[strings.TrimSuffix(filepath.Base(f), ".png")] = true
		golden(t, "paper", f)
		golden(t, "paper", strings.TrimSuffix(f, ".png")+".csv")
	}
	for _, name := range PaperFigures() {
		if !drawn[name] {
			t.Errorf("%s was not drawn", name)
		}
	}
}

// TestGoldenSeesChanges moves one point or bar of each figure a little: the
// picture must no longer pass for the golden one.
func TestGoldenSeesChanges(t *testing.T) {
	all := readPapers()
	if testing.Short() {
		all.Figure = all.Figure[:3]
	}
	for i := range all.Figure {
		f := &all.Figure[i]
		pic, err := all.picture(f, filepath.Join("testdata", "paper"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("testdata", "paper", "golden-"+f.Name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		for panel := range pic.charts {
			c := &pic.charts[panel]
			var q *point
			if len(c.groups) > 0 {
				q = &c.groups[0].bars[0].parts[0].point
			} else {
				q = &c.curves[0].points[0]
			}
			was := *q
			q.mean += 0.02 * (c.axis.high - c.axis.low)
			got, err := pic.render()
			if err != nil {
				t.Fatal(err)
			}
			if same, err := samePicture(got, want); same || err != nil {
				t.Errorf("%s: a point of panel %d moved, and the picture is the same (%v)", f.Name, panel, err)
			}
			*q = was
		}
	}
}

// TestAttributionGolden draws where the time of the mean step went.
func TestAttributionGolden(t *testing.T) {
	dir := t.TempDir()
	files, err := DrawFolders(t.Context(), dir, []string{filepath.Join("testdata", "time")}, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "time.png")
	if len(files) != 4 || files[3] != path { // cdf needs requests
		t.Fatalf("drew %v, want time.png last", files)
	}
	golden(t, "time", path)
	golden(t, "time", filepath.Join(dir, "time.csv"))
}

// Variants have longer names: letters stand above their bars, which the legend explains.
func TestAttributionOfVariants(t *testing.T) {
	dir := t.TempDir()
	if _, err := DrawFolders(t.Context(), dir,
		[]string{filepath.Join("testdata", "paper", "fig14a")}, ""); err != nil {
		t.Fatal(err)
	}
	golden(t, "variants", filepath.Join(dir, "time.png"))
	for label, want := range map[string]string{
		"vLLM":                  "vLLM",
		"vLLM-SO+FT":            "SO+FT",
		"SparseServe, window 4": "SS, window 4",
	} {
		if got := short(label); got != want {
			t.Errorf("%q is %q above a bar, want %q", label, got, want)
		}
	}
}

// The legend has no part that no bar has.
func TestAttributionNamesWhatBarsHave(t *testing.T) {
	runs := []Run{{System: "vllm", Completed: 1, Steps: 2, Rate: 1,
		PhaseS: map[string]float64{"linears": 3, "head": 1, "scoring": 0, "all_reduce": 0}}}
	pics := attribution(panels(runs), abscissaOf(runs))
	if len(pics) != 1 {
		t.Fatalf("%d pictures", len(pics))
	}
	if got := pics[0].seriesOf(); !slices.Equal(got, []string{"linears", "LM head"}) {
		t.Errorf("the legend has %q", got)
	}
	runs[0].PhaseS["head"] = 1e-4 // too thin to be drawn
	pics = attribution(panels(runs), abscissaOf(runs))
	if all := pics[0].entries(map[string]look{}); len(all) != 1 || all[0].name != "linears" {
		t.Errorf("the legend has %v", all)
	}
	runs[0].PhaseS = map[string]float64{"linears": 0}
	if pics := attribution(panels(runs), abscissaOf(runs)); len(pics) > 0 {
		t.Error("drew bars without a part")
	}
}

// A bar of a live run has the time of the steps that were not split; one that does not say how much
// that is has no bar.
func TestAttributionOfLiveRuns(t *testing.T) {
	const one = `[{"system":"vllm","model":"m","seed":1,"rate":1,"completed":1,"steps":16,
		"live":{},"phase_s":{"linears":0.002,"host":0.001%s}}]`
	for rest, want := range map[string][]string{
		"":             nil,
		`,"unsplit":0`: {"linears,1 req/s,1,0.125", "total,1 req/s,1,0.1875,"},
		`,"unsplit":0.045`: {"linears,1 req/s,1,0.125", "not split,1 req/s,1,2.8125,",
			"total,1 req/s,1,3,"},
	} {
		dir := t.TempDir()
		text := fmt.Sprintf(one, rest)
		if err := os.WriteFile(filepath.Join(dir, "summary.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := DrawFolders(t.Context(), dir, []string{dir}, ""); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "time.csv"))
		if drawn := err == nil; drawn != (want != nil) {
			t.Errorf("%q: drew the time: %v", rest, drawn)
		}
		for _, w := range want {
			if !strings.Contains(string(got), w) {
				t.Errorf("%q: no %q in\n%s", rest, w, got)
			}
		}
	}
}

// A bar holds all of the step's time: the parts add up to it.
func TestAttributionIsComplete(t *testing.T) {
	runs, err := Read(filepath.Join("testdata", "time"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, ph := range Phases() {
		known[ph.Key] = true
	}
	for i := range runs {
		r := &runs[i]
		b, ok := phaseBar(runs[i:i+1], Phases(), bySystem(r), abscissa{of: rate}, r.Rate)
		if !ok {
			t.Fatalf("no bar for %s at %g", r.System, r.Rate)
		}
		got, want := 0.0, stepTime(r)
		for _, p := range b.parts {
			got += p.mean
		}
		if got < 0.999999*want || got > 1.000001*want {
			t.Errorf("%s at %g: bar of %g ms, step of %g ms", r.System, r.Rate, got, want)
		}
		for key := range r.PhaseS {
			if !known[key] {
				t.Errorf("phase %q has no part of the bar", key)
			}
		}
	}
}

func TestPaperErrors(t *testing.T) {
	for _, c := range []struct{ name, folder, file, text, want string }{
		{"nothing", "fig99", "summary.json", "[]", "no results of a figure"},
		{"half a file", "fig15", "summary.json", `[{"system":"vl`, "fig15"},
		{"a column is missing", "fig04", "table.csv", "direction,engine,gb_s\nload,memcpy,1\n", `no column "block_tokens"`},
		{"not a number", "fig08", "table.csv", "window,overlap\n1,most\n", `row 1: overlap = "most": want a number`},
		{"no row", "fig08", "table.csv", "window,overlap\n", "no row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := t.TempDir()
			if err := os.Mkdir(filepath.Join(results, c.folder), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(results, c.folder, c.file), []byte(c.text),
				0o644); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			_, err := DrawPaper(t.Context(), dir, results, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
			if files, _ := filepath.Glob(filepath.Join(dir, "*.png")); len(files) > 0 {
				t.Errorf("left %v", files)
			}
		})
	}
}

// render draws the picture as a PNG.
func (p *picture) render() ([]byte, error) {
	p.bound()
	page := p.lay()
	return encode("png", dotsPerInch, page.width, page.height, page.paint)
}
