// Package metrics sums up a run: a server reports each request and step to a Run (run.go), whose
// Summary (summary.go) has the figures and warnings. metric.go lists the figures for tables, charts
// and files. record.go has the records of requests and steps, with the phases of a step's time
// (phases.go).
//
// A Cutoff (cutoff.go) leaves out the start or the end of a run. trend.go finds growing queues,
// use.go the utilisation of the machine.
package metrics
