// Package papers runs what the figures of the SparseServe and PSA papers show, and judges what
// the papers claim.
//
// A Studies (studies.go) runs the experiments of sparseserve/*.toml, psa/*.toml and
// minference/*.toml: sweeps and goodput searches over one store, and studies (study.go), each of
// which measures something else and writes a table:
//
//	study_blocks.go      transfers of KV blocks (SparseServe Fig. 4), selections of consecutive
//	                     steps (Fig. 8), eviction policies and Belady's optimum
//	study_psa.go         KV that systems need at one accuracy (PSA Fig. 5), by a proxy, and blocks
//	                     that hold the attention (Fig. 2); both sample heads (attention.go)
//	study_minference.go  prompts and heads, priced (MInference Figs. 1b and 10 to 12)
//	study_served.go      prefix hits, and long prompts with sparse prefill, which no paper shows
//
// Each folder of results names the program that made it (version.go).
//
// Judge (outcome.go) reads the results (results.go) and measures the numbers of claims.toml, which
// says how each is measured (measure.go): a metric's mean over the rows of one filter, divided by
// the mean over the rows of another. claims_kept.csv has our numbers. tuned.toml lists the
// parameters that no paper gives, and a Studies can run with one of them changed (tuned.go).
//
// Figures (figure.go) makes charts of the results: figures.toml describes each figure,
// figure_rows.go reads the rows of results and figure_panel.go makes a chart of them. names.go has
// the names and colours that the papers give systems, models and phases of a step.
package papers
