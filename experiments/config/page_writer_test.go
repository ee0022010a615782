package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/units"
	"github.com/sparseserve/sparseserve/traces"
)

type pageWriter struct {
	strings.Builder
	t      *testing.T
	cfg    []Point
	prefix string     // of the keys of the table that is being written
	keys   [][]string // key, type and unit, default, values, meaning
}

func (p *pageWriter) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *pageWriter) all() {
	p.printf("%s", strings.ReplaceAll(`# Configuration

A configuration describes runs: every system at every rate with every seed. A configuration file
overrides the built-in experiment 'default', whose values are the defaults below, and
'--set KEY=VALUE' overrides the file, for example '--set workload.rate=0.2'. If a configuration sets
its own trace or model, keys that were fitted to the default ones become neutral
('experiments/config/neutral.go'). A path in a file is relative to the folder of that file or else
to the working folder, a path of '--set' to the working folder. Each result stores its complete
configuration in 'config.toml'.

A plain number has the unit of its key. A quoted number may name another unit: times '"100ms"',
'"2min"', tokens '"64k"' (64,000) or '"64Ki"' (65,536), rates '"90/min"', sizes '"80GiB"', shares
'"5%"'. The same holds inside lists and distributions, such as '"uniform(32k, 128k)"'. With '--set'
it needs no quotes: '--set slo.tbt_s=100ms'.

The type of a key is that of its default. Numbers are at least 0 unless the last column has another
bound. 'sparseserve list keys' prints all bounds and names.

`, "'", "`"))
	p.topKeys()
	p.printf("\n## [workload]\n\n")
	p.fields("workload", "Spec", "../../traces/spec.go", &p.cfg[0].Workload)
	p.printf("\n## [fleet]\n\nReplicas of the server and their router. `--live` and `compare` " +
		"have one server.\n\n")
	p.fields("fleet", "Spec", "../../sim/fleet/spec.go", &p.cfg[0].Fleet)
	p.printf("\n## [system]\n\n")
	p.system()
	p.printf("\n## [slo]\n\nThe service level of a run or of `plan`. A configuration without any " +
		"bound has the two of\nSparseServe §4.2 (the defaults below), one with a bound has only " +
		"its own bounds.\n\n")
	p.fields("slo", "SLO", "slo.go", &p.cfg[0].SLO)
	p.printf("\n## [metrics]\n\nParts of a run to exclude from its metrics. Latencies, rejections " +
		"and shares cover the\nrequests that arrive in the remaining time. Rates, steps and " +
		"utilisation cover that time.\n\n")
	p.fields("metrics", "Cutoff", "../../sim/metrics/cutoff.go", &p.cfg[0].Metrics)
	p.printf("\n## [output]\n\nFiles that a run writes besides its summary and requests.\n\n")
	p.fields("output", "Output", "config.go", &p.cfg[0].Output)
	p.printf("\n## [card]\n\nCard figures to override, for what-if. The defaults hold for "+
		"`%s`.\n\n", p.cfg[0].GPU)
	p.card()
	p.printf("\n## [scores]\n\nThe random process that stands in for a model's attention scores. " +
		"Its defaults are\nfitted to published locality.\n\n")
	p.fields("scores", "Params", "../../sim/score/process.go", &p.cfg[0].Scores)
	p.printf("\n## Axes and searches\n\n`simulate`, `goodput` and `plan` read these keys as well.\n\n")
	p.sweep()
}

// head begins a table of keys below prefix.
func (p *pageWriter) head(prefix string) {
	p.prefix = prefix
	p.printf("| key | | default | values |\n|-|-|-|-|\n")
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
	p.printf("| `%s` | %s | %s | %s |\n", key, about, withUnit(value, typ), valuesOf(values, about))
}

// withUnit returns a default with the unit of its type and unit. The default shows the type, unless
// it is one value of a list, or missing.
func withUnit(value, typ string) string {
	kind, unit, _ := strings.Cut(typ, ", ")
	with := strings.TrimSpace(value + " " + strings.TrimPrefix(unit, "share"))
	switch {
	case value == "":
		return typ
	case strings.HasPrefix(kind, "list") && !strings.HasPrefix(value, "`["):
		return with + ", or a list"
	}
	return with
}

// valuesOf returns the values that a reader looks for: no names that a command lists, and no bounds
// that only catch slips.
func valuesOf(values, about string) string {
	if strings.Contains(about, "(list ") {
		return ""
	}
	if !strings.ContainsAny(values, "<>") {
		return values
	}
	var bounds []string
	for _, b := range units.Bounds(values) {
		lower := strings.HasPrefix(b.Relation, ">")
		switch {
		case lower && b.Limit > 0 && b.Limit <= 0.001:
			bounds = append(bounds, "> 0")
		case lower && (b.Limit != 0 || b.Relation == ">") || !lower && b.Limit < 1000:
			bounds = append(bounds, fmt.Sprintf("%s %g", b.Relation, b.Limit))
		}
	}
	return strings.Join(bounds, ", ")
}

func (p *pageWriter) topKeys() {
	about := p.elements("config.go", "topKeys")
	p.head("")
	for _, row := range []struct {
		key, typ string
		value    any
		values   []string
	}{
		{"model", "string", p.cfg[0].Model, append(llm.Names(), "a path")},
		{"gpu", "string", p.cfg[0].GPU, append(hw.CardNames(), "a path")},
		{"seed", "list of integers", p.cfg[0].Seed, nil},
	} {
		p.row(row.key, row.typ, p.literal(row.value), strings.Join(row.values, ", "), about[row.key])
	}
}

func (p *pageWriter) system() {
	systems := systemNames(p.cfg)
	p.printf("These keys, and the next six tables, hold for all systems of the experiment. A preset " +
		"overrides the\nengine. The default *preset* means that the default experiment's systems " +
		"differ. A `[[systems]]`\ntable adds one system: a `name`, the `preset` to start from, any " +
		"key of `[system]`, and keys of\nthe other tables by their full name, such as " +
		"`selection.budget_tokens = 1024`. The engine sets:\n\n")
	for _, key := range keysOf(&hw.EngineDefaults{}) {
		p.printf("- `%s`\n", specKey(key))
	}
	p.printf("\n")
	p.head("system.")
	p.row("preset", "list of strings", p.literal(systems), strings.Join(presetNames(Presets()), ", "),
		"systems to run (list systems), in addition to [[systems]] tables")
	about := p.comments("../../sim/spec.go", "Spec")
	table := "system"
	for i, f := range FieldsOf(&p.cfg[0].System) {
		if of, _, _ := strings.Cut(specKey(f.Key), "."); of != table {
			table = of
			typ := map[string]string{"selection": "SelectionSpec", "offload": "OffloadSpec",
				"prefill": "PrefillSpec", "prefix_cache": "PrefixCacheSpec",
				"speculation": "SpeculationSpec", "simulation": "SimulationSpec"}[table]
			about = p.part(table, "../../sim/spec.go", typ)
		}
		_, key, _ := strings.Cut(specKey(f.Key), ".")
		if f.Key == "name" {
			continue // of a [[systems]] table
		}
		value := p.literal(f.Value.Interface())
		for s := range p.cfg {
			if other := FieldsOf(&p.cfg[s].System)[i].Value.Interface(); p.literal(other) != value {
				value = preset
			}
		}
		typ, values := p.kind(&f, choices(specKey(f.Key), &f))
		p.row(key, typ, value, values, about[key])
	}
}

// fields writes the keys of a struct, with the comments of its declaration.
func (p *pageWriter) fields(table, typeName, file string, v any) {
	about := p.comments(file, typeName)
	p.head(table + ".")
	for _, f := range FieldsOf(v) {
		of, key, _ := strings.Cut(wholeKey(table, f.Key), ".")
		if p.prefix != of+"." {
			about = p.part(of, file, map[string]string{"sessions": "SessionSpec",
				"longbench": "LongBenchSpec", "estimates": "Estimates"}[of])
		}
		typ, values := p.kind(&f, choices(wholeKey(table, f.Key), &f))
		value := p.literal(f.Value.Interface())
		if table == "workload" && f.Key == "rate" {
			typ, value = "list of numbers, requests/s", p.literal(ratesOf(p.cfg))
		}
		if table == "workload" && f.Key == "concurrency" {
			typ = "list of integers, requests"
		}
		if table == "fleet" && f.Key == "replicas" {
			typ = "list of integers, servers"
		}
		p.row(key, typ, value, values, about[key])
	}
}

// part begins the table of a struct's part with the comment of its type, and returns the comments
// of its fields.
func (p *pageWriter) part(table, file, typeName string) map[string]string {
	lead, _, _ := strings.Cut(p.typeComment(file, typeName), ":")
	for _, words := range []string{typeName + " ", "says ", "are "} {
		lead = strings.TrimPrefix(lead, words)
	}
	lead = strings.TrimSuffix(strings.ToUpper(lead[:1])+lead[1:], ".")
	p.printf("\n## [%s]\n\n%s.\n\n", table, lead)
	p.head(table + ".")
	return p.comments(file, typeName)
}

// choices returns the names that a key accepts, with "a path" where a file does.
func choices(key string, f *Field) []string {
	switch key {
	case "workload.format":
		return traces.FormatNames()
	case "workload.trace":
		return []string{traces.BuiltIn, traces.Synthetic, traces.Sessions, "a path"}
	case "longbench.datasets":
		return traces.AllSets()
	case "system.engine":
		return append(hw.EngineNames(), "a path")
	}
	if OfLoad(key) {
		return strings.Fields(f.Tag.Get("values"))
	}
	return names[key]
}

// kind returns the type and unit of a key's value, and its range or choices.
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
	card, err := hw.LoadCard(p.cfg[0].GPU)
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
	p.fields("goodput", "GoodputSearch", "goodput.go", &search)
	p.printf("\n## [plan]\n\nWhat `plan` may buy ([planning](planning.md)).\n\n")
	plan := DefaultPlan()
	p.fields("plan", "Plan", "plan.go", &plan)
}
