// Package run carries out the points of a configuration and keeps their results.
//
// A Runner carries out one point and reports to a Sink (result.go): the modelled device of a
// Simulator (simulator.go) or the computing one of Live (live.go). outputs.go writes requests and
// steps, perfetto.go the trace for Perfetto, summary.go the tables of summaries. A Grid (grid.go)
// runs points on all cores.
//
// A Store (store.go) keeps each finished run as an archive under a hash of all that its results
// depend on, with ModelVersion (version.go); its Do (store_do.go) makes only what is missing, Pack
// (store_pack.go) joins the archives, and processes claim runs one by one (claim.go). A Folder
// (folder.go) is the result folder of a command: a Question (question.go), an Index (index.go), the
// results and a store. job.go writes what is missing as the tasks of a cluster's job (slurm.go,
// kubernetes.go).
package run
