// Package papers runs what the figures of the SparseServe and PSA papers show, and judges what
// the papers claim.
//
// A Studies (studies.go) runs the experiments of sparseserve/*.toml and psa/*.toml: sweeps and
// goodput searches over one store, and studies that serve no requests, which measure one thing:
//
//	study_transfer.go   bandwidth of transfer engines (SparseServe Fig. 4)
//	study_overlap.go    selections of consecutive steps (SparseServe Fig. 8)
//	study_sparsity.go   blocks that hold the attention (PSA Fig. 2)
//	study_accuracy.go   KV that systems need at one accuracy (PSA Fig. 5), by a proxy
//	study_eviction.go   eviction policies and Belady's optimum on one run's selections
//
// The two of PSA sample heads (attention.go) at every size of a selection (selectors.go). Each
// folder of results names the program that made it (version.go).
//
// Judge (outcome.go) reads the results (results.go) and measures the numbers of claims.toml, which
// says how each is measured (measure.go): a metric's mean (metrics.go) over the rows of one filter,
// divided by the mean over those of another. claims_kept.csv has our numbers. tuned.toml lists the
// parameters that no paper gives, and a Studies can run with one of them changed (tuned.go).
package papers
