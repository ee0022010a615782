package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/traces"
)

// LoadServer decodes the configuration of the real server of a record: the file or built-in
// experiment named by path (none if empty), under --set flags. Model and card have no default. The
// caller replaces the workload with a record (Point.Replayed). If identified, the record names the
// content of its prompts, and the server has its engine's default prefix cache. preset is the
// system of a configuration that names none; "": ServerPreset.
func LoadServer(path string, sets []string, identified bool, preset string) (p Point, err error) {
	l := newLoader()
	l.compares = true
	if err := l.serverBase(); err != nil {
		return p, err
	}
	if path != "" {
		doc, err := openDocument(path)
		if err != nil {
			return p, err
		}
		if err := l.apply(doc, false); err != nil {
			return p, err
		}
	}
	for _, set := range sets {
		if OfLoad(set) {
			return p, fmt.Errorf("--set %s: the record says which requests arrive and when; leave this "+
				"out", set)
		}
		doc, err := parseFlag(set)
		if err == nil {
			err = l.apply(doc, true)
		}
		if err != nil {
			return p, err
		}
	}
	byRecord := len(l.presets) == 0 && len(l.custom) == 0
	l.serverSystem(identified, cmp.Or(preset, ServerPreset))
	// until the record's
	l.cfg.Workload = traces.DefaultSpec()
	l.lists["workload.rate"] = reflect.ValueOf([]float64{1})
	l.lists["workload.concurrency"] = reflect.ValueOf([]int{0})
	if err := l.oneServer(); err != nil {
		return p, err
	}
	runs, err := l.finish()
	if err != nil {
		return p, err
	}
	p = runs[0]
	p.ByRecord = byRecord
	p.Workload.PrefixHit = 1 // a record may have hits
	p.Warnings = l.effects.warnings()
	// A request that the server took whole is replayed whole or not at all.
	p.System.Prefill.OverLength, p.System.Prefill.MaxPromptTokens = "reject", 0
	p.Output, p.Metrics = Output{}, metrics.Cutoff{Warmup: metrics.CutNone, Drain: metrics.CutNone}
	return p, nil
}

// serverBase takes the keys of the built-in default experiment that do not concern requests, model,
// card or system.
func (l *loader) serverBase() error {
	if err := l.base(); err != nil {
		return err
	}
	l.presets = nil
	l.drop(func(g Setting) bool { return OfSystem(g.Key) || OfLoad(g.Key) })
	return nil
}

// ServerPreset is the default system of a server: current vLLM.
const ServerPreset = "vllm-0.15"

// serverSystem sets the system if the configuration does not. The comparison infers prefix cache
// hits, unless the record names its prompts. Sampling is the setting of kept records, because they
// are compared under it.
func (l *loader) serverSystem(identified bool, preset string) {
	for key, value := range map[string]string{"prefix_cache.mode": sim.PrefixOff,
		"sampling": SamplingTopP} {
		if identified && key == "prefix_cache.mode" || preset != ServerPreset && key == "sampling" {
			continue
		}
		if path := specKey(key); !l.chosen(path) {
			l.settings = append(l.settings, Setting{Key: path, at: path, Value: value, kept: true})
		}
	}
	if len(l.presets) == 0 && len(l.custom) == 0 {
		l.presets = []string{preset}
	}
}

// oneServer refuses configurations of several servers, or of none.
func (l *loader) oneServer() error {
	for _, k := range []struct{ key, list, value string }{
		{"model", "models", "llama2-7b"}, {"gpu", "gpus", "h100-80gb"},
	} {
		if l.origin(k.key) == builtInDefault {
			return fmt.Errorf("%s: not set; name what the record was measured on, as in "+
				"--set %[1]s=%s (sparseserve list %s)", k.key, k.value, k.list)
		}
	}
	if names := l.systemNames(); len(names) > 1 {
		err := &KeyError{Key: "system.preset", Value: "[" + strings.Join(names, ", ") + "]",
			Reason: "a record describes one server; choose one system with --set system.preset=NAME"}
		if len(l.presets) == 0 {
			err.Key, err.Where = "systems", l.custom[0].doc.where("systems")
		}
		return l.place(err)
	}
	const leave = "a record describes one server; leave it out"
	switch replicas := l.lists["fleet.replicas"]; {
	case l.lists["seed"].Len() > 1:
		return l.listError("seed", "a record is compared with one run; choose one seed")
	case replicas.Len() > 1:
		return l.listError("fleet.replicas", leave)
	case l.most("fleet.replicas") > 1:
		return l.keyError("fleet.replicas", Show(int64(l.most("fleet.replicas"))), leave)
	case len(l.cfg.Fleet.Fail) > 0:
		return l.keyError("fleet.fail", rowsText(l.cfg.Fleet.Fail), leave)
	}
	return nil
}

// Replayed returns the configuration with the requests of a record as its workload, from the trace
// at path.
func (p Point) Replayed(path string, requests int) *Point {
	p.Workload = traces.DefaultSpec()
	w := &p.Workload
	w.Trace, w.Format, w.Arrivals = path, traces.FormatCSV, traces.ArrivalsTrace
	w.Rate, w.Requests, w.Speed, w.OutputScale = 0, requests, 1, 1
	p.Name = PointName(&p)
	return &p
}
