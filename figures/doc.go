// Package figures draws charts (package doc) as PNG, SVG and PDF, and their numbers as CSV.
//
// Draw (draw.go) writes a file for each figure. layout.go arranges charts under a legend
// (legend.go) and above the caption. format.go encodes the picture. Line charts use plot.go,
// axis.go, curves.go and notes.go, with the looks of marker.go; horizontal bars and effects of
// knobs use rows.go, heat maps heatmap.go. numbers.go writes the CSV.
//
// The package depends on charts only. Package answers makes charts from results and writes their
// captions.
package figures
