// Package figures draws result files: PNGs in the panels, axes and series of
// the SparseServe paper, each with its numbers as CSV.
//
// Read (results.go) takes the summaries of a result folder and series.go groups
// them into curves, averaged over seeds. What a picture shows is said in
// chart.go. Draw (draw.go) makes those of any result folder: the metrics of
// metrics.go against the rate, and where the time of a step went
// (attribution.go). DrawPaper (paper.go) makes the paper's figures, one file
// each. render.go draws a picture with plot.go, bars.go, right.go, legend.go and
// marker.go. DrawValidation (validate.go) makes those of a validation: a table of
// errors in colour, the steps of each run, phases side by side. DrawComparison
// (compare.go) makes those of a real server's record held against its simulation.
// The package knows result files and nothing of what made them.
package figures
