// Package run carries out the points of a configuration and keeps their results.
//
// A Runner carries out one point and reports to a Sink (result.go): the modelled device of a
// Simulator (simulator.go) or the computing one of Live (live.go). outputs.go writes requests and
// steps, perfetto.go the trace for Perfetto, summary.go the tables of summaries. A Grid (grid.go)
// runs points on all cores.
//
// Folders of results are of two kinds. A Store (store.go) is the folder of one experiment and
// starts anew each time. A PointStore (point_store.go) keeps each finished point in a folder with
// a manifest (manifest.go), found again by all that the point depends on; its Do
// (point_store_do.go) runs only what is missing. It belongs to one version of the model, unless
// it is shared by several Makers, whose points are claimed one by one (claim.go). A SweepFolder
// (sweep_folder.go) adds the index of a sweep and tables of all points; job.go writes what is
// missing as the tasks of a cluster's job (slurm.go, kubernetes.go).
package run
