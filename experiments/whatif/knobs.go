package whatif

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/nearest"
)

// Knob is a varied part of a configuration.
type Knob struct {
	Name   string   // as a flag has it
	Keys   []string // of the configuration, set by it
	Factor bool     // a value multiplies the configuration's value and is no value itself
	About  string

	form string // of a key's value, with %s for the knob's; empty for the value itself
}

// kind returns the kind of the knob's values.
func (k *Knob) kind() reflect.Kind {
	switch {
	case k.Factor:
		return reflect.Float64
	case k.form != "":
		return reflect.Int
	}
	return config.KindOf(k.Keys[0])
}

// Knobs lists the knobs with short names, hardware knobs first.
func Knobs() []Knob {
	card := func(name, about string, figures ...string) Knob {
		k := Knob{Name: name, Factor: true, About: about}
		for _, f := range figures {
			k.Keys = append(k.Keys, "card."+f)
		}
		return k
	}
	key := func(name, key, about string) Knob {
		return Knob{Name: name, Keys: []string{key}, About: about}
	}
	return []Knob{
		card("link", "host link, both directions", "link_h2d", "link_d2h"),
		card("hbm", "size of HBM", "hbm_size"),
		card("hbm_bandwidth", "bandwidth of HBM", "hbm_bandwidth"),
		card("compute", "arithmetic peak", "peak_fp16"),
		card("cpu", "speed of the host", "cpu_speed"),
		{Name: "dram", Keys: []string{"system.dram_gib"}, Factor: true, About: "host memory for KV"},
		{Name: "prefix_dram", Keys: []string{"prefix_cache.dram_gib"}, Factor: true,
			About: "host memory for prefixes"},
		key("budget", "selection.budget_tokens", "tokens that a head attends to"),
		key("block", "system.block_tokens", "tokens of a KV block"),
		key("chunk", "prefill.chunk_tokens", "tokens of a chunk of prefill"),
		key("window", "offload.working_set_steps", "steps of the working-set history"),
		key("requests", "system.max_requests", "requests in a batch"),
		key("tokens", "system.max_tokens", "tokens in a batch"),
		key("utilisation", "system.utilisation", "fraction of HBM that the server may use"),
		key("rate", "workload.rate", "requests/s"),
		{Name: "prompt", Keys: []string{"workload.prompt_lengths"}, form: "fixed(%s)",
			About: "tokens of every prompt, of a synthetic trace"},
	}
}

// KnobNamed returns a knob by its short name, by a key of the configuration or by the end of a key.
func KnobNamed(name string) (Knob, error) {
	var names []string
	for _, k := range Knobs() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	key, err := config.SettableKey(name)
	switch {
	case err != nil && nearest.Name(name, names) != "":
		return Knob{}, fmt.Errorf("no such knob%s; want one of %s, or a key of the configuration",
			nearest.Meant(name, names), strings.Join(names, ", "))
	case err != nil:
		return Knob{}, err
	case key == "seed":
		return Knob{}, fmt.Errorf("seeds are the same for every value; set them with --set seed=[1,2,3]")
	}
	return Knob{Name: name, Keys: []string{key}}, nil
}

// defaultFactors are the ends of the ranges that are tried for hardware knobs by default.
var defaultFactors = map[string][2]string{
	"link": {"0.5", "2"}, "hbm": {"0.75", "1.5"}, "hbm_bandwidth": {"0.5", "2"},
	"compute": {"0.5", "2"},
	"cpu":     {"0.5", "2"}, "dram": {"0.5", "2"}, "prefix_dram": {"0.5", "2"},
}

// Defaults lists the default ranges: factors for hardware, and for policies half and twice the
// value that the systems of the configuration share. Knobs that no system uses are left out.
func Defaults(base []config.Point) []Range {
	var ranges []Range
	for _, k := range Knobs() {
		if !used(&k, base) {
			continue
		}
		if ends, ok := defaultFactors[k.Name]; ok {
			ranges = append(ranges, Range{Knob: k, Low: ends[0], High: ends[1], fallible: true})
			continue
		}
		value, ok := common(k.Keys[0], base)
		switch {
		case !ok:
		case k.Name == "utilisation":
			ranges = append(ranges, Range{Knob: k, Low: "0.8", High: "0.95", fallible: true})
		case value >= 1:
			ranges = append(ranges, Range{Knob: k, Low: fmt.Sprint(max(1, int64(value)/2)),
				High: fmt.Sprint(int64(value) * 2), fallible: true})
		}
	}
	return ranges
}

// used reports whether the knob affects any of the systems.
func used(k *Knob, runs []config.Point) bool {
	return slices.ContainsFunc(runs, func(p config.Point) bool {
		s := &p.System
		switch k.Name {
		case "link":
			return s.Offload.On || s.PrefixTiers() // hits below HBM are loaded over it
		case "dram":
			return s.Offload.On
		case "prefix_dram":
			return s.CachesPrefixes() && s.PrefixCache.DRAMGiB > 0
		case "budget":
			return s.Sparse()
		case "chunk":
			return strings.Contains(s.Prefill.Split, "chunked")
		case "window":
			return s.Offload.BatchControl
		case "rate", "prompt":
			return false // the load of a metric
		}
		return true
	})
}

// common returns the value of a key if all systems have the same.
func common(key string, runs []config.Point) (value float64, ok bool) {
	for i := range runs {
		f, _ := runs[i].Field(key)
		v := 0.0
		switch {
		case f.CanInt():
			v = float64(f.Int())
		case f.CanFloat():
			v = f.Float()
		default:
			return 0, false
		}
		if i > 0 && v != value {
			return 0, false
		}
		value, ok = v, true
	}
	return value, ok
}

// settings returns the settings for a value of the knob; none if the configuration already has the
// value.
func (k *Knob) settings(base []config.Point, value string) ([]config.Setting, error) {
	if !k.Factor {
		if k.form != "" {
			value = fmt.Sprintf(k.form, value)
		}
		return []config.Setting{config.NewSetting(k.Keys[0], value)}, nil
	}
	factor, err := number(value)
	if err != nil || !(factor > 0) {
		return nil, fmt.Errorf("%s = %s: want a factor above 0", k.Name, value)
	}
	if factor == 1 {
		return nil, nil
	}
	if config.OfSystem(k.Keys[0]) {
		gib, ok := common(k.Keys[0], base)
		if !ok {
			return nil, fmt.Errorf("%s: systems have different %s; vary that key by values",
				k.Name, k.Keys[0])
		}
		return []config.Setting{config.NewSetting(k.Keys[0], text(gib*factor))}, nil
	}
	machine, err := base[0].Machine()
	if err != nil {
		return nil, err
	}
	var settings []config.Setting
	for _, key := range k.figures(&base[0]) {
		figure := strings.TrimPrefix(key, "card.")
		v := machine.Changeable(figure)
		if _, err := (hw.Changes{figure: v * factor}).Check(); err != nil {
			return nil, fmt.Errorf("--vary %s=%s: a factor of %s = %s: %w; a value itself is "+
				"--vary %[3]s=%[2]s", k.Name, value, key, text(v), err)
		}
		settings = append(settings, config.NewSetting(key, text(v*factor)))
	}
	return settings, nil
}

// figures returns the knob's keys. For the link it adds the other link keys that the configuration
// sets, because only unset keys follow automatically.
func (k *Knob) figures(base *config.Point) []string {
	keys := slices.Clone(k.Keys)
	all, _ := hw.ChangeKeys()
	for _, key := range all {
		_, set := base.Card[key]
		if k.Name == "link" && set && strings.HasPrefix(key, "link_") &&
			!slices.Contains(keys, "card."+key) {
			keys = append(keys, "card."+key)
		}
	}
	return keys
}
