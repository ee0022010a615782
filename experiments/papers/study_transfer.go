package papers

import (
	"github.com/sparseserve/sparseserve/experiments"
	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/sim/kv"
)

// transferSpec is what Fig. 4 measures.
type transferSpec struct {
	Model       string   `toml:"model"`
	GPU         string   `toml:"gpu"`
	BlockTokens []int    `toml:"block_tokens"`
	GiB         float64  `toml:"gib"` // moved by each call
	Loads       []string `toml:"loads"`
	Saves       []string `toml:"saves"`
}

// transfers times one call of each transfer engine at each block size, all
// blocks of one layer and nothing else.
func (l *Studies) transfers(e *experiments.Experiment) error {
	var spec transferSpec
	if err := decodeStudy(e.Name, &spec); err != nil {
		return err
	}
	model, err := hw.LoadModel(spec.Model)
	if err != nil {
		return err
	}
	t := run.NewTable("direction", "engine", "block_tokens", "block_bytes", "blocks", "gb_s")
	for _, d := range []struct {
		name    string
		engines []string
		time    func(*hw.Device, *kv.Moves) (des.Time, error)
		system  func(engine string) sim.Spec
	}{
		{"load", spec.Loads, loadTime,
			func(e string) sim.Spec { return sim.Spec{Engine: paperEngine, Offload: true, LoadEngine: e} }},
		{"save", spec.Saves, saveTime,
			func(e string) sim.Spec { return sim.Spec{Engine: paperEngine, Offload: true, SaveEngine: e} }},
	} {
		for _, engine := range d.engines {
			for _, tokens := range spec.BlockTokens {
				size := model.Geometry(tokens).BlockBytes
				blocks := int64(spec.GiB*(1<<30)) / size
				p := config.Point{Model: spec.Model, GPU: spec.GPU, System: d.system(engine)}
				l.alter(&p)
				gpu, err := p.Machine()
				if err != nil {
					return err
				}
				device, err := hw.NewDevice(gpu, &model, run.DeviceOptions(&p.System))
				if err != nil {
					return err
				}
				m := kv.Moves{BlockBytes: size, Loads: blocks, Saves: blocks}
				took, err := d.time(device, &m)
				if err != nil {
					return err
				}
				t.Add(d.name, engine, tokens, size, blocks, float64(blocks*size)/took.Seconds()/1e9)
			}
		}
	}
	return l.write(e, t)
}

// loadTime is how long a step waits for the loads, from a pool of their size.
func loadTime(d *hw.Device, m *kv.Moves) (des.Time, error) {
	if err := d.Begin(&sim.Step{DRAMBytes: m.Loads * m.BlockBytes}); err != nil {
		return 0, err
	}
	if err := d.Move(&kv.Moves{BlockBytes: m.BlockBytes, Loads: m.Loads}); err != nil {
		return 0, err
	}
	t, err := d.Finish()
	return t.Phases.LoadStall, err
}

// saveTime is how long a step waits for its saves when none may queue.
func saveTime(d *hw.Device, m *kv.Moves) (des.Time, error) {
	if err := d.Begin(&sim.Step{}); err != nil {
		return 0, err
	}
	if err := d.Move(&kv.Moves{BlockBytes: m.BlockBytes, Saves: m.Saves}); err != nil {
		return 0, err
	}
	t, err := d.Finish()
	return t.Phases.SaveStall, err
}
