package config

import (
	"slices"
	"strings"
)

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

// listed are the keys that a list of values expands into runs, the first slowest. system.preset,
// which names systems, comes before them.
var listed = []string{"fleet.replicas", "workload.rate", "workload.concurrency", "seed"}

// topKeys are the keys outside every table.
var topKeys = []string{
	"model", // model to serve: a name (list models), or a config.json or its folder
	"gpu",   // GPU: a name (list gpus) or a card file
	"seed",  // random seed; one run per value of a list
}

// tableNames are the tables of a configuration.
var tableNames = slices.Concat([]string{"card", "workload", "sessions", "longbench", "fleet",
	"systems"}, systemTables, []string{"scores", "estimates", "slo", "metrics", "output"})

// OfLoad reports whether a key belongs to the workload.
func OfLoad(key string) bool {
	table, _, _ := strings.Cut(key, ".")
	return table == "workload" || table == "sessions" || table == "longbench"
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
