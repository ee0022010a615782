package config

import (
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/warn"
	"github.com/sparseserve/sparseserve/sim"
	"github.com/sparseserve/sparseserve/sim/fleet"
	"github.com/sparseserve/sparseserve/sim/metrics"
	"github.com/sparseserve/sparseserve/sim/score"
	"github.com/sparseserve/sparseserve/traces"
)

// Config is one experiment: every system at every rate with every seed. Load
// decodes it over the built-in default experiment; WriteTOML writes it out so
// that loading the text again gives the same runs.
type Config struct {
	Name string // file name without extension, or the built-in name
	Common
	Seeds    []uint64
	Rates    []float64 // requests/s; a single 0 where requests do not arrive at a rate
	Clients  []int     // of a closed loop; a single 0 of other arrivals
	Replicas []int     // of a fleet
	Systems  []sim.Spec
	Notes    []string       // surprises of the configuration, in words
	Unused   []warn.Warning // warnings of chosen keys that no run uses

	files []string // that it was read from

	// Own is set if the model, the card or the trace differs from the built-in experiment's.
	Own bool
	// NoRates is set if such a configuration names no rates, so Rates have to be chosen. NoRequests
	// is the same for the number of requests of a run.
	NoRates, NoRequests bool
}

// Common is the part of a configuration that all of its runs share. A Point has its own rate or
// clients in Workload and its own replicas in Fleet.
type Common struct {
	Model    string
	GPU      string
	Card     hw.Changes // figures of the card that are not the card's own
	Workload traces.Spec
	Fleet    fleet.Spec
	Scores   score.Params
	SLO      SLO
	Metrics  metrics.Cutoff
	Output   Output
}

// Output selects the files that a run writes beside its summary and requests.
type Output struct {
	// write steps.csv: one row per batch step
	Steps bool `toml:"steps"`
	// write trace.json: steps for Perfetto or chrome://tracing
	Trace bool `toml:"trace"`
	// add to summary and requests the attention that the selections hold, from 0 to 1, and an estimate
	// of accuracy from it; report --format text shows the attention
	RecallProxy bool `toml:"recall_proxy" used:"sparse,drawn"`
}

// topKeys are the keys outside every table.
var topKeys = []string{
	"model", // model to serve: a name (list models), or a config.json or its folder
	"gpu",   // GPU: a name (list gpus) or a card file
	"seed",  // random seed; one run per value of a list
}

// tableNames are the tables of a configuration.
var tableNames = slices.Concat([]string{"card", "workload", "sessions", "longbench", "fleet",
	"systems"}, systemTables, []string{"scores", "estimates", "slo", "metrics", "output"})

// tables returns the tables of the configuration's own keys, without [card] and the tables of
// systems.
func (c *Common) tables() []settable {
	return []settable{{"workload", &c.Workload}, {"fleet", &c.Fleet}, {"scores", &c.Scores},
		{"slo", &c.SLO}, {"metrics", &c.Metrics}, {"output", &c.Output}}
}

// partOf names the table of each struct that is a field of another table, except in systems.
var partOf = map[string]string{"sessions": "workload", "longbench": "workload",
	"estimates": "scores"}

// OfLoad reports whether a key belongs to the workload.
func OfLoad(key string) bool {
	table, _, _ := strings.Cut(key, ".")
	return table == "workload" || partOf[table] == "workload"
}

// OfSystem reports whether a key belongs to a system: to [system] or to the table of one of its
// parts.
func OfSystem(key string) bool {
	table, _, _ := strings.Cut(key, ".")
	return slices.Contains(systemTables, table)
}

// systemTables are the tables of a system: [system] and the tables of its parts.
var systemTables = []string{"system", "selection", "offload", "prefill", "prefix_cache",
	"speculation", "simulation"}
