// Package papers runs the experiments of the figures in the SparseServe and PSA papers, and judges
// the papers' claims.
//
// A Studies (studies.go) runs the experiments of sparseserve/*.toml, psa/*.toml and
// minference/*.toml: sweeps and goodput searches over one store, and studies, each of
// which measures another quantity and writes a table:
//
//	study_blocks.go      transfers of KV blocks (SparseServe Fig. 4), selections of consecutive
//	                     steps (Fig. 8), eviction policies and Belady's optimum
//	study_psa.go         KV that systems need at one accuracy (PSA Fig. 5), by a proxy, and blocks
//	                     that hold the attention (Fig. 2); both sample heads (attention.go)
//	study_minference.go  prompts and heads, priced (MInference Figs. 1b and 10 to 12)
//
// Each folder of results records the program that made it.
//
// Judge (outcome.go) reads the results (rows.go) and measures the numbers of claims.toml, which
// defines each measurement (measure.go): a metric's mean over the rows of one filter, divided by
// the mean over the rows of another. claims_kept.csv holds our numbers. tuned.toml lists the
// parameters that no paper gives. A Studies can run with one of these changed (tuned.go).
//
// Figures (figure.go) makes charts of the results: figures.toml describes each figure,
// rows.go reads the rows of results and figure_panel.go makes a chart from them. names.go
// gives systems, models and step phases the names and colours of figures.toml.
package papers
