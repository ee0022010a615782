package cli

import (
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/hw/llm"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/nearest"
	"github.com/sparseserve/sparseserve/sim/pattern"
)

type listCmd struct {
	Kind string `arg:"" optional:"" name:"KIND" complete:"kinds" help:"What to list. Without it: the kinds."`
	Name string `arg:"" optional:"" name:"NAME" complete:"names" help:"One of them, with all details. A card, an engine, a model, prices or patterns can be a file; of keys, how they begin."`
	JSON bool   `name:"json" help:"Print JSON and nothing else."`
}

// Help is shown below the command's help.
func (*listCmd) Help() string {
	var b strings.Builder
	b.WriteString("Kinds:\n\n")
	for _, k := range listKinds() {
		fmt.Fprintf(&b, "  %-12s %s\n", k.name, k.about)
	}
	return b.String()
}

// listKind is a kind of built-in data, under its name in the list command.
type listKind struct {
	name, about string
	all         func() (*doc.Doc, error)
	one         func(name string) (*doc.Doc, error) // nil where a name has no more to show
	names       func() []string                     // that complete a name, or nil
}

func listKinds() []listKind {
	return []listKind{
		{"gpus", "cards, for the key gpu", answers.Cards, answers.Card, hw.CardNames},
		{"engines", "serving engines, for the key system.engine", answers.ServingEngines,
			answers.Engine, hw.EngineNames},
		{"models", "models, for the key model", answers.Models, answers.Model, llm.Names},
		{"systems", "serving systems, for the key system.preset", answers.Systems, nil, nil},
		{"evictions", "eviction policies of the KV cache, for the key offload.eviction",
			answers.Evictions, nil, nil},
		{"selections", "selection algorithms of sparse attention, for the key selection.policy",
			answers.Selections, nil, nil},
		{"prefills", "what prompts attend to, for the key prefill.attention, with published " +
			"accuracy", answers.Prefills, answers.Prefill, config.PrefillAttentions},
		{"patterns", "a pattern file of MInference or a published mix: heads by pattern, and what they " +
			"compute", nil, patternsOf, pattern.NamedMixes},
		{"routers", "routers of a fleet, for the key fleet.router", answers.Routers, nil, nil},
		{"prices", "prices of GPUs, for the keys plan.prices and plan.prices_file",
			func() (*doc.Doc, error) { return answers.Prices("") }, answers.Prices, nil},
		{"traces", "traces and trace formats, for the keys workload.trace and workload.format",
			answers.Traces, nil, nil},
		{"experiments", "experiments that commands run by name", answers.Experiments, nil, nil},
		{"keys", "keys of a configuration: type, unit, default, values and meaning", nil, nil,
			func() []string { return keys("") }},
	}
}

// Run implements the command.
func (l *listCmd) Run(app *App) error {
	kinds := listKinds()
	i := slices.IndexFunc(kinds, func(k listKind) bool { return k.name == l.Kind })
	switch {
	case l.Kind == "":
		_, err := fmt.Fprintln(app.Stdout, l.Help()+"\n"+details("list"))
		return err
	case i < 0:
		names := namesOf["kinds"]("")
		return fmt.Errorf("list %s: no such kind%s; there are %s", l.Kind,
			nearest.Meant(l.Kind, names), strings.Join(names, ", "))
	case l.Kind == "keys":
		return l.keys(app)
	}
	k, d, err := &kinds[i], (*doc.Doc)(nil), error(nil)
	switch {
	case l.Name == "" && k.all != nil:
		d, err = k.all()
	case k.one == nil:
		err = fmt.Errorf("list %s %s: leave the name out; the list has all that is known", k.name, l.Name)
	case l.Name == "":
		err = fmt.Errorf("list %s: expected a file, or one of %s", k.name,
			strings.Join(k.names(), ", "))
	default:
		d, err = k.one(l.Name)
	}
	if err != nil {
		return err
	}
	return printEither(app, l.JSON, d, d)
}

// patternsOf returns the document of a pattern file or a published mix.
func patternsOf(name string) (*doc.Doc, error) {
	if groups := pattern.Counts(name); groups != nil {
		return answers.Patterns(groups), nil
	}
	found, err := config.ReadPatterns(name)
	if err != nil {
		return nil, err
	}
	d := answers.Patterns(found.Groups())
	d.Lead = append(d.Lead, fmt.Sprintf("%s: %d layers of %d heads", name, len(found), len(found[0])))
	return d, nil
}

// keysCSV has a row for each key: key, type and unit, default, values, meaning. It is made from the
// declarations of the keys, with docs/configuration.md.
//
//go:embed keys.csv
var keysCSV string

// configKey is a row of it, and a key in --json output.
type configKey struct {
	Key     string `json:"key"`
	Type    string `json:"type"`
	Default string `json:"default"`
	Values  string `json:"values"`
	Meaning string `json:"meaning"`
}

// configKeys lists the keys that begin with a text.
func configKeys(begin string) (keys []configKey) {
	rows, err := csv.NewReader(strings.NewReader(keysCSV)).ReadAll()
	if err != nil {
		panic("keys.csv: " + err.Error()) // a test reads it
	}
	for _, row := range rows {
		if strings.HasPrefix(row[0], begin) {
			keys = append(keys, configKey{row[0], row[1], row[2], row[3], row[4]})
		}
	}
	return keys
}

// keys prints the keys that begin with the name.
func (l *listCmd) keys(app *App) error {
	found := configKeys(l.Name)
	if len(found) == 0 {
		return fmt.Errorf("no key begins with %q%s; list keys without it has all", l.Name,
			nearest.Meant(l.Name, keys("")))
	}
	if l.JSON {
		return printJSON(app, found)
	}
	for _, k := range found {
		fmt.Fprintf(app.Stdout, "%s = %s   (%s)\n    %s\n", k.Key, cmp.Or(k.Default, "(none)"), k.Type,
			k.Meaning)
		if k.Values != "" {
			fmt.Fprintf(app.Stdout, "    values: %s\n", k.Values)
		}
	}
	return nil
}
