// Package figures draws charts (package doc) as PNG, SVG and PDF, and their numbers as CSV.
//
// Draw (draw.go) writes a file for each figure. layout.go puts charts under a legend (legend.go)
// and over the caption, and format.go encodes the picture. A chart of lines is drawn with plot.go,
// axis.go, curves.go and notes.go, in the looks of marker.go; lying bars and effects of knobs with
// rows.go, heat maps with heatmap.go. numbers.go writes the CSV.
//
// The package knows charts alone: package answers makes them of results, and says in their captions
// what was run.
package figures
