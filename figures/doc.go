// Package figures draws result files: PNG, SVG or PDF in the panels, axes and series of
// the SparseServe paper, each with its numbers as CSV.
//
// Read (results.go) takes the summaries of a result folder and series.go groups
// them into curves, averaged over seeds. What a picture shows is said in
// chart.go. Draw (draw.go) makes those of any result folder: the metrics of
// metrics.go against what varies (abscissa.go), where the time of a step went
// (attribution.go), distributions and time lines of single runs (inside.go); names.go and
// caption.go say what was run. DrawPaper (paper.go) makes the papers' figures: papers.toml
// describes each, records.go reads the rows of results and panel.go makes charts of them.
// render.go lays a picture out and format.go encodes it, drawn with plot.go, axis.go, curves.go,
// bars.go, notes.go, legend.go and marker.go. DrawDoc (document.go) draws the charts of a document:
// lines, lying bars and effects of knobs (rows.go), heat maps (heatmap.go).
// The package knows result files and documents, and nothing of what made them.
package figures
