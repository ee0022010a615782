// Package report makes one self-contained HTML file of a result folder, which needs no network.
//
// Write (page.go) finds out what the folder holds (folder.go), has it read (runs.go for
// simulations and sweeps, plan.go, whatif.go, comparison.go, validation.go, calibration.go) and
// fills page.html: warnings first, charts, tables, what the figures rest on (rests.go), the
// configuration. Charts are data that page.js hands to ECharts (echarts/README.md); those of runs
// are the pictures of package figures. The same folder gives the same bytes.
package report
