// Package figures draws result files: PNGs in the layout of the SparseServe
// paper's Figs. 10 to 12, each with its numbers beside it as CSV.
//
// Read (results.go) takes the summaries of a result folder; series.go groups
// them into one curve a system, averaged over seeds; Draw (draw.go) writes one
// picture for each metric of metrics.go; panel.go, legend.go and marker.go say
// how it looks. The package knows result files and nothing of what made them.
package figures
