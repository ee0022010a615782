package validate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sparseserve/sparseserve/cuda/live"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/stats"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
)

// phaseNames are the columns of a step's phases, with the prefix live_ or model_ and the suffix _s.
var phaseNames = []string{"linears", "prefill_attention", prefillIndex, "dense_attention",
	"sparse_attention", "scoring", "load_stall", "save_stall", "head", "host"}

// prefillIndex is the phase that older tables do not have.
const prefillIndex = "prefill_index"

func phaseTimes(p *sim.Phases) []des.Time {
	return []des.Time{p.Linears, p.PrefillAttention, p.PrefillIndex, p.DenseAttention,
		p.SparseAttention, p.Scoring, p.LoadStall, p.SaveStall, p.Head, p.Host}
}

// Step is one step of a live run and the modelled times of its batch, in seconds.
type Step struct {
	Mixed        bool // has a prefill
	Split        bool // the live device split its time into phases
	Live, Model  float64
	decodes      int
	livePhases   []float64 // in the order of phaseNames
	modelPhases  []float64
	loads, saves int64
}

// price writes the table of a live run's steps and their modelled times.
func price(p *config.Point, dir, into string) error {
	table, err := priced(p, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(into), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return writeGzip(into, table)
}

// priced prices the steps of a live run with the modelled device and returns the table of both.
func priced(p *config.Point, dir string) (table []byte, err error) {
	path := filepath.Join(dir, callsFile)
	text, err := files.ReadResult(path)
	if err != nil {
		return nil, err
	}
	steps, err := unmarshalCalls(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	model, err := hw.LoadModel(p.Model)
	if err != nil {
		return nil, err
	}
	gpu, err := p.Machine()
	if err != nil {
		return nil, err
	}
	device, err := hw.NewDevice(gpu, &model, run.DeviceOptions(&p.System))
	if err != nil {
		return nil, err
	}
	times, err := live.Price(steps, device)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return tabulateSteps(steps, times), nil
}

// tabulateSteps writes the steps of a live run and their modelled times.
func tabulateSteps(steps []live.RecordedStep, model []sim.Timing) []byte {
	header := []string{"step", "start_s", "decodes", "prefills", "tokens", "loads", "saves", "split",
		"live_s", "model_s"}
	for _, kind := range []string{"live_", "model_"} {
		for _, name := range phaseNames {
			header = append(header, kind+name+"_s")
		}
	}
	table := run.NewTable(header...)
	for i := range steps {
		s := &steps[i]
		tokens, decodes, loads, saves := 0, 0, int64(0), int64(0)
		for j := range s.Works {
			tokens = max(tokens, s.Works[j].Tokens)
			decodes = max(decodes, s.Works[j].Decodes)
		}
		for j := range s.Layers {
			loads += s.Layers[j].Moves.Loads
			saves += s.Layers[j].Moves.Saves
		}
		row := []any{s.Step.Index, run.Seconds(s.Step.Start), decodes, s.Step.Requests - decodes, tokens,
			loads, saves,
			s.Timing.Phases.Unsplit == 0, run.Seconds(s.Timing.Elapsed), run.Seconds(model[i].Elapsed)}
		for _, p := range []*sim.Phases{&s.Timing.Phases, &model[i].Phases} {
			for _, t := range phaseTimes(p) {
				row = append(row, signedSeconds(t))
			}
		}
		table.Add(row...)
	}
	return table.Bytes()
}

// signedSeconds formats a time that may be negative: the host's remainder is negative if the GPU
// events add up to more than the step.
func signedSeconds(t des.Time) string {
	if t < 0 {
		return "-" + run.Seconds(-t)
	}
	return run.Seconds(t)
}

// readSteps reads what tabulateSteps wrote.
func readSteps(path string, text []byte) ([]Step, error) {
	rows, err := files.NewCSVReader(path, bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: no header", path)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	steps := make([]Step, len(rows)-1)
	for i, row := range rows[1:] {
		var bad error
		number := func(name string) float64 {
			j, ok := column[name]
			if !ok {
				bad = cmp.Or(bad, fmt.Errorf("%s: no column %s", path, name))
				return 0
			}
			v, err := strconv.ParseFloat(row[j], 64)
			if err != nil {
				bad = cmp.Or(bad, fmt.Errorf("%s:%d: %s = %q: want a number", path, i+2, name,
					row[j]))
			}
			return v
		}
		s := &steps[i]
		s.Mixed = number("prefills") > 0
		s.Live, s.Model = number("live_s"), number("model_s")
		s.decodes = int(number("decodes"))
		s.loads, s.saves = int64(number("loads")), int64(number("saves"))
		if j, ok := column["split"]; ok {
			s.Split = row[j] == "true"
		}
		for _, name := range phaseNames {
			if _, ok := column["live_"+name+"_s"]; !ok && name == prefillIndex {
				s.livePhases, s.modelPhases = append(s.livePhases, 0), append(s.modelPhases, 0)
				continue
			}
			s.livePhases = append(s.livePhases, number("live_"+name+"_s"))
			s.modelPhases = append(s.modelPhases, number("model_"+name+"_s"))
		}
		if bad != nil {
			return nil, bad
		}
	}
	return steps, nil
}

// compareSteps compares the times of identical batches, for decode-only steps and for other steps.
func compareSteps(run string, steps []Step) []Comparison {
	var out []Comparison
	for _, kind := range []string{"decode", "mixed"} {
		var ratios, off []float64
		var live, model float64
		livePhases, modelPhases := make([]float64, len(phaseNames)), make([]float64, len(phaseNames))
		split := 0
		for i := range steps {
			s := &steps[i]
			if s.Mixed != (kind == "mixed") || s.Live <= 0 {
				continue
			}
			live, model = live+s.Live, model+s.Model
			ratios = append(ratios, s.Model/s.Live)
			off = append(off, math.Abs(s.Model/s.Live-1))
			if s.Split {
				split++
				for j := range phaseNames {
					livePhases[j] += s.livePhases[j]
					modelPhases[j] += s.modelPhases[j]
				}
			}
		}
		n := float64(len(ratios))
		if n == 0 {
			continue
		}
		slices.Sort(off)
		sum := 0.0
		for _, r := range ratios {
			sum += r
		}
		name := "step_" + kind + "_"
		out = append(out, compare(run, name+"mean_s", live/n, model/n),
			compare(run, name+"ratio", 1, sum/n),
			measured(run, name+"abs_error_p50", stats.Of(off, 50)),
			measured(run, name+"abs_error_p95", stats.Of(off, 95)))
		if split == 0 {
			continue
		}
		for j, phase := range phaseNames {
			if livePhases[j] != 0 || modelPhases[j] != 0 {
				out = append(out, compare(run, "phase_"+kind+"_"+phase+"_s", livePhases[j], modelPhases[j]))
			}
		}
	}
	return out
}
