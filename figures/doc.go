// Package figures draws charts (package doc) as PNG, SVG and PDF.
//
// Draw (layout.go) writes a file for each figure: charts under a legend (legend.go, with the looks
// of series) and above the caption. Line charts are in lines.go, horizontal bars and effects of
// knobs in bars.go, heat maps in heatmap.go.
//
// The package depends on charts only. Package answers makes charts from results and writes their
// captions.
package figures
