// Package run executes the points of a configuration and stores their results.
//
// A Runner executes one point and reports to a Sink (result.go): on the modelled device of a
// Simulator (simulator.go) or on the real device of Live (live.go). outputs.go writes requests and
// steps, perfetto.go the trace for Perfetto, summary.go the tables of summaries. A Grid (grid.go)
// runs points on all cores.
//
// A Store (store.go) keeps each finished run as an archive under a hash of everything that its
// results depend on, including ModelVersion (version.go). Its Do (store_do.go) makes only the
// missing runs, Pack (store_pack.go) joins the archives, and processes claim runs one by one
// (claim.go). A Folder (folder.go) is the result folder of a command: a Question (question.go), an
// Index (index.go), the results and a store.
package run
