package figures

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/internal/files"
)

// validated is what the figures need of one run of a validation.
type validated struct {
	Run     string  `json:"run"`
	System  string  `json:"system"`
	Model   string  `json:"model"`
	GPU     string  `json:"gpu"`
	Variant string  `json:"variant"`
	Rate    float64 `json:"rate"`
	Trace   string  `json:"trace"` // empty where the workload has no file
	Seed    uint64  `json:"seed"`
	// requests that arrive
	Requests int `json:"requests"`
	// clients of a closed loop, which has no rate
	Concurrency int    `json:"concurrency"`
	Steps       string `json:"steps"` // path from the result folder
	Saturated   bool   `json:"saturated"`

	errors map[string]float64 // by metric, relative; NaN where live is 0, missing where both are
	steps  []validatedStep
}

// validatedStep is one step of a live run. Times are in seconds.
type validatedStep struct {
	mixed, split bool
	live, model  float64
	phases       [2][]float64 // live and modelled, in the order of livePhases
}

// DrawValidation draws the result folder of a validation into pictures/ below
// it: errors.png, for each run whose steps were kept steps-RUN.png, for each load of such
// phases-LOAD.png. It returns the paths.
func DrawValidation(ctx context.Context, dir string, formats ...string) ([]string, error) {
	runs, err := readValidation(dir)
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "pictures")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var files []string
	add := func(paths []string, err error) error {
		files = append(files, paths...)
		return err
	}
	if err := add(drawErrors(dir, runs, formats)); err != nil {
		return files, err
	}
	for i := range runs {
		if runs[i].Steps == "" { // they were not kept
			continue
		}
		if err := add(drawSteps(dir, &runs[i], formats)); err != nil {
			return files, err
		}
	}
	phases, err := writeAll(ctx, dir, phasePictures(runs), formats)
	return append(files, phases...), err
}

func readValidation(dir string) ([]validated, error) {
	var index struct {
		Runs []validated `json:"runs"`
	}
	if err := files.ReadJSON(filepath.Join(dir, "runs.json"), &index); err != nil {
		return nil, err
	}
	var all []struct {
		Run       string   `json:"run"`
		Metric    string   `json:"metric"`
		Live      float64  `json:"live"`
		Simulated float64  `json:"simulated"`
		Error     *float64 `json:"error"`
	}
	if err := files.ReadJSON(filepath.Join(dir, "validate.json"), &all); err != nil {
		return nil, err
	}
	for i := range index.Runs {
		r := &index.Runs[i]
		r.errors = map[string]float64{}
		for _, c := range all {
			switch {
			case c.Run != r.Run || c.Live == 0 && c.Simulated == 0:
			case c.Error == nil:
				r.errors[c.Metric] = math.NaN()
			default:
				r.errors[c.Metric] = *c.Error
			}
		}
		if r.Steps == "" {
			continue
		}
		var err error
		if r.steps, err = readValidatedSteps(
			filepath.Join(dir, filepath.FromSlash(r.Steps))); err != nil {
			return nil, err
		}
	}
	if len(index.Runs) == 0 {
		return nil, fmt.Errorf("%s: no run", filepath.Join(dir, "runs.json"))
	}
	return index.Runs, nil
}

// readValidatedSteps reads a table of steps, live and modelled.
func readValidatedSteps(path string) ([]validatedStep, error) {
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	t, err := parseTable(path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	steps := make([]validatedStep, len(t.rows))
	for i := range steps {
		s := &steps[i]
		s.split, s.mixed = t.text(i, "split") == "true", t.number(i, "prefills") > 0
		s.live, s.model = t.number(i, "live_s"), t.number(i, "model_s")
		for side, kind := range []string{"live_", "model_"} {
			for _, ph := range livePhases() {
				s.phases[side] = append(s.phases[side], t.number(i, kind+ph.key+"_s"))
			}
		}
	}
	return steps, t.err
}

// fileName makes a file name of a label.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("._+-=", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' ||
			'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, text)
}

// load names what a run's load is.
func (v *validated) load() string {
	return strings.TrimSpace(v.Variant + " " + v.arrivals())
}

// phasePictures draw the phases of the split steps, live next to modelled: a
// picture for each load, with steps that only decode and mixed steps apart.
func phasePictures(runs []validated) []picture {
	var loads []string
	for i := range runs {
		loads = append(loads, runs[i].load())
	}
	var pictures []picture
	for _, load := range unique(loads) {
		var of []validated
		for i := range runs {
			if runs[i].load() == load {
				of = append(of, runs[i])
			}
		}
		title := of[0].where()
		pic := picture{file: "phases-" + fileName(
			strings.TrimSuffix(strings.TrimSuffix(load, " req/s"), " sessions/s")),
			looks: map[string]look{}, caption: originOf(of)}
		for i, kind := range []string{"steps that only decode", "steps with a prefill"} {
			c := chart{title: kind + ": measured, then modelled\n" + title, y: "Time per step (ms)"}
			for j := range of {
				if g, ok := phaseGroup(&of[j], i == 1); ok {
					c.groups = append(c.groups, g)
				}
			}
			if len(c.groups) > 0 {
				c.axis = linear(barSpan(c.groups))
				c.axis.high *= 1.12
				pic.charts = append(pic.charts, c)
			}
		}
		if len(pic.charts) == 0 {
			continue
		}
		widest := 0
		for _, c := range pic.charts {
			widest = max(widest, len(c.groups))
		}
		pic.wide = max(1, float64(widest)/4.5)
		for _, ph := range livePhases() {
			pic.looks[ph.name] = ph.look
		}
		pictures = append(pictures, pic)
	}
	return pictures
}

// phaseGroup is a pair of bars of one run.
func phaseGroup(r *validated, mixed bool) (group, bool) {
	sums, n := [2][]float64{make([]float64, len(livePhases())), make([]float64, len(livePhases()))},
		0.0
	for _, s := range r.steps {
		if s.mixed != mixed || !s.split {
			continue
		}
		n++
		for side := range sums {
			for j, v := range s.phases[side] {
				sums[side][j] += v
			}
		}
	}
	g := group{label: shortSystem(r.System)}
	for side, name := range []string{"live", "model"} {
		b := bar{series: name, note: name}
		for j, ph := range livePhases() {
			v := 1e3 * math.Max(0, sums[side][j]) / n
			b.parts = append(b.parts, part{ph.name, point{runs: int(n), mean: v, low: v, high: v}})
		}
		g.bars = append(g.bars, b)
	}
	return g, n > 0
}

// shortSystem is a system's name that fits below a pair of bars.
func shortSystem(system string) string {
	return strings.Replace(strings.Replace(label(system), "SparseServe", "SS", 1),
		"sparseserve", "SS", 1)
}

// worstFirst orders runs by their largest error, those at saturation last.
func worstFirst(runs []validated, metrics []string) []validated {
	runs = slices.Clone(runs)
	worst := func(v *validated) float64 {
		w := 0.0
		for _, m := range metrics {
			if e, ok := v.errors[m]; ok && (math.IsNaN(e) || math.Abs(e) > w) {
				w = math.Abs(e)
			}
			if math.IsNaN(w) {
				return math.Inf(1)
			}
		}
		return w
	}
	slices.SortStableFunc(runs, func(a, b validated) int {
		if a.Saturated != b.Saturated {
			if a.Saturated {
				return 1
			}
			return -1
		}
		return cmp.Compare(worst(&b), worst(&a))
	})
	return runs
}
