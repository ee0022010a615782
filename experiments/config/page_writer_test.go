package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/traces"
)

type pageWriter struct {
	strings.Builder
	t      *testing.T
	cfg    *Config
	prefix string     // of the keys of the table that is being written
	keys   [][]string // key, type and unit, default, values, meaning
}

func (p *pageWriter) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *pageWriter) all() {
	p.printf(`# Configuration

A configuration describes runs of every system at every rate with every seed. A file overrides the built-in experiment
%[1]sdefault%[1]s,
	whose values are the defaults below; %[1]s--set KEY=VALUE%[1]s overrides the file,
	with keys such as %[1]sworkload.rate%[1]s. If a
configuration sets its own trace or model, keys that are fitted to the built-in ones become neutral
(%[1]sexperiments/config/neutral.go%[1]s). A relative path in a file is resolved in the folder of that file, then in the working folder; a path of
%[1]s--set%[1]s in the working folder. Each result stores its complete configuration in %[1]sconfig.toml%[1]s.

A plain number has the unit of its key. A number in quotes may carry another: times %[1]s"100ms"%[1]s, %[1]s"2min"%[1]s, tokens
%[1]s"64k"%[1]s (64,000) or %[1]s"64Ki"%[1]s (65,536), rates %[1]s"90/min"%[1]s,
	sizes %[1]s"80GiB"%[1]s, shares %[1]s"5%%"%[1]s; so do the numbers in lists and
distributions,
	%[1]s"uniform(32k, 128k)"%[1]s. With %[1]s--set%[1]s it needs no quotes: %[1]s--set slo.tbt_s=100ms%[1]s.

`, "`")
	p.topKeys()
	p.printf("\n## [workload]\n\n")
	p.workload()
	p.printf("\n## [fleet]\n\nReplicas of the server and their router. `--live` and `compare` " +
		"use one server.\n\n")
	p.fields("fleet", "FleetSpec", "../../sim/fleet_spec.go", &p.cfg.Fleet,
		map[string][]string{"router": sim.RouterNames()})
	p.printf("\n## [system]\n\n")
	p.system()
	p.printf("\n## [slo]\n\n%s\n\n",
		strings.Join(strings.Fields(`The service level of a run, or of a search by "plan".
		Without any bound the two of SparseServe §4.2 apply,
			the defaults below; a configuration that sets a bound has only
		those that it sets.`), " "))
	choices := map[string][]string{"rule": sloRules}
	for _, f := range FieldsOf(&p.cfg.SLO) {
		if strings.HasSuffix(f.Key, "_stat") {
			choices[f.Key] = sim.StatNames
		}
	}
	p.fields("slo", "SLO", "slo.go", &p.cfg.SLO, choices)
	p.printf("\n## [metrics]\n\nParts of a run to exclude from its figures. Latencies, rejections " +
		"and shares are then of the requests that arrive in the rest; rates, steps and utilisation " +
		"of what happens in it.\n\n")
	p.fields("metrics", "Cutoff", "../../sim/cutoff.go", &p.cfg.Metrics,
		map[string][]string{"warmup": sim.CutRules, "drain": sim.CutRules})
	p.printf("\n## [output]\n\nFiles that a run writes in addition to its summary and requests.\n\n")
	p.fields("output", "Output", "config.go", &p.cfg.Output, nil)
	p.printf("\n## [card]\n\nFigures of the card set to other values, for what-if. The defaults are "+
		"those of `%s`.\n\n", p.cfg.GPU)
	p.card()
	p.printf("\n## [scores]\n\nThe score process, which stands in for a model's attention; fitted " +
		"to published locality.\n\n")
	p.fields("scores", "Params", "../../sim/score/process.go", &p.cfg.Scores, nil)
	p.printf("\n## Axes and searches\n\n`simulate`, `goodput` and `plan` read these keys too.\n\n")
	p.sweep()
}

// head begins a table of keys below prefix.
func (p *pageWriter) head(prefix string) {
	p.prefix = prefix
	p.printf("| key | type, unit | default | values | |\n|-|-|-|-|-|\n")
}

// preset is the default of a key that the default experiment's systems differ in.
const preset = "preset"

func (p *pageWriter) row(key, typ, value, values, about string) {
	if about == "" {
		p.t.Errorf("%s: no comment at its declaration", key)
	}
	p.keys = append(p.keys, []string{p.prefix + key, typ, value, values, about})
	switch value {
	case "":
	case preset:
		value = "*preset*"
	default:
		value = "`" + value + "`"
	}
	p.printf("| `%s` | %s | %s | %s | %s |\n", key, typ, value, values, about)
}

func (p *pageWriter) topKeys() {
	about := p.elements("config.go", "topKeys")
	p.head("")
	for _, row := range []struct {
		key, typ string
		value    any
		values   []string
	}{
		{"model", "string", p.cfg.Model, append(hw.ModelNames(), "a path")},
		{"gpu", "string", p.cfg.GPU, append(hw.CardNames(), "a path")},
		{"seed", "list of integers", p.cfg.Seeds[0], nil},
	} {
		p.row(row.key, row.typ, p.literal(row.value), strings.Join(row.values, ", "), about[row.key])
	}
}

func (p *pageWriter) workload() {
	choices := map[string][]string{}
	for _, f := range FieldsOf(&p.cfg.Workload) {
		choices[f.Key] = traces.Choices(f.Key)
	}
	p.fields("workload", "Spec", "../../traces/spec.go", &p.cfg.Workload, choices)
}

func (p *pageWriter) system() {
	var names []string
	for _, s := range p.cfg.Systems {
		names = append(names, s.Name)
	}
	p.printf("Keys of all systems of the experiment, and so are those of the six tables after it. " +
		"An " +
		"engine sets")
	keys := keysOf(&hw.EngineDefaults{})
	for i, key := range keys {
		p.printf("%s `%s`", map[bool]string{
			true: " and", false: strings.Repeat(",", min(i, 1))}[i == len(keys)-1], specKey(key))
	}
	p.printf(", and\na preset goes over it; where the default is *preset*, the default experiment's " +
		"systems differ. A `[[systems]]` table is a system of its\nown: a `name`, the `preset` that it " +
		"starts from, any key of `[system]`, and any key of the other tables by its whole\nname, as in " +
		"`selection.budget_tokens = 1024`.\n\n")
	p.head("system.")
	p.row("preset", "list of strings", p.literal(names), strings.Join(presetNames(Presets()), ", "),
		"systems to run (list systems), besides those of [[systems]] in the same file")
	choices := map[string][]string{"system.engine": append(hw.EngineNames(), "a path")}
	for _, e := range specEnums {
		choices[e.key] = e.values
	}
	about := p.comments("../../sim/spec.go", "Spec")
	table := "system"
	for i, f := range FieldsOf(&p.cfg.Systems[0]) {
		if of, _, _ := strings.Cut(specKey(f.Key), "."); of != table {
			table = of
			typ := map[string]string{"selection": "SelectionSpec", "offload": "OffloadSpec",
				"prefill": "PrefillSpec", "prefix_cache": "PrefixCacheSpec",
				"speculation": "SpeculationSpec", "simulation": "SimulationSpec"}[table]
			lead, _, _ := strings.Cut(p.typeComment("../../sim/spec.go", typ), ":")
			lead = strings.TrimPrefix(lead, typ+" says ")
			p.printf("\n## [%s]\n\n%s.\n\n", table, strings.ToUpper(lead[:1])+lead[1:])
			p.head(table + ".")
			about = p.comments("../../sim/spec.go", typ)
		}
		_, key, _ := strings.Cut(specKey(f.Key), ".")
		if f.Key == "name" {
			continue // of a [[systems]] table
		}
		value := p.literal(f.Value.Interface())
		for s := range p.cfg.Systems {
			if other := FieldsOf(&p.cfg.Systems[s])[i].Value.Interface(); p.literal(other) != value {
				value = preset
			}
		}
		typ, values := p.kind(&f, choices[specKey(f.Key)])
		p.row(key, typ, value, values, about[key])
	}
}

// fields writes the keys of a struct, with the comments of its declaration.
func (p *pageWriter) fields(table, typeName, file string, v any, choices map[string][]string) {
	about := p.comments(file, typeName)
	p.head(table + ".")
	for _, f := range FieldsOf(v) {
		typ, values := p.kind(&f, choices[f.Key])
		value := p.literal(f.Value.Interface())
		if table == "workload" && f.Key == "rate" {
			typ, value = "list of numbers, requests/s", p.literal(p.cfg.Rates)
		}
		if table == "workload" && f.Key == "concurrency" {
			typ = "list of integers, requests"
		}
		if table == "fleet" && f.Key == "replicas" {
			typ = "list of integers, servers"
		}
		p.row(f.Key, typ, value, values, about[f.Key])
	}
}

// kind says what a key's value is, and which there are.
func (p *pageWriter) kind(f *Field, choices []string) (typ, values string) {
	switch e := elem(f.Value); {
	case e.Kind() == reflect.Slice:
		typ = "list of " + cmp.Or(f.Tag.Get("rows"), "pairs") + " of numbers"
	case f.Value.Kind() == reflect.Slice:
		typ = "list of strings"
	case e.Kind() == reflect.String:
		typ = "string"
	case e.Kind() == reflect.Bool:
		typ = "true or false"
	case e.CanInt():
		typ = "integer"
	default:
		typ = "number"
	}
	if unit := f.Tag.Get("unit"); unit != "" {
		typ += ", " + unit
	}
	if tag := f.Tag.Get("range"); tag != "" {
		return typ, tag
	}
	return typ, strings.Join(choices, ", ")
}

func (p *pageWriter) card() {
	card, err := hw.LoadCard(p.cfg.GPU)
	if err != nil {
		p.t.Fatal(err)
	}
	figures, about := map[string]hw.Figure{}, map[string]string{}
	for _, part := range []struct {
		prefix, typeName string
		v                any
	}{{"", "GPU", &card.GPU}, {"link_", "Link", &card.Link}, {"cpu_", "CPU", &card.CPU}} {
		comments := p.comments("../../hw/card.go", part.typeName)
		for _, f := range FieldsOf(part.v) {
			key := part.prefix + f.Key
			figures[key], about[key] = f.Value.Interface().(hw.Figure), comments[f.Key]
		}
	}
	p.head("card.")
	keys, units := hw.ChangeKeys()
	for i, key := range keys {
		f := figures[key]
		if f.Unit != units[i] {
			p.t.Errorf("card.%s: in %s, the card has it in %s", key, units[i], f.Unit)
		}
		p.row(key, "number, "+units[i], p.literal(f.Value), hw.ChangeRange, about[key])
	}
}

func (p *pageWriter) sweep() {
	about := p.elements("sweep_load.go", "sweepKeys")
	p.head("")
	for _, key := range sweepKeys {
		typ := map[string]string{"base": "string", "axis": "array of tables", "goodput": "table",
			"plan": "table"}[key]
		p.row(key, typ, "", "", about[key])
	}
	about = p.elements("axes.go", "axisKinds")
	for _, kind := range axisKinds {
		typ := map[bool]string{true: "array of tables", false: "table of lists"}[kind == "list"]
		p.row("axis."+kind, typ, "", "", about[kind])
	}
	p.printf("\n## [goodput]\n\n")
	search := DefaultGoodputSearch()
	p.fields("goodput", "GoodputSearch", "goodput.go", &search, nil)
	p.printf("\n## [plan]\n\nThe table asks what to buy ([planning](planning.md)).\n\n")
	plan := DefaultPlan()
	p.fields("plan", "Plan", "plan.go", &plan, nil)
}
