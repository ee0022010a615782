package answers

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/sim/metrics"
)

// compared returns the metric of a figure that files name by key, such as ttft_mean_s. Step figures
// are not metrics of a run.
func compared(key string) metrics.Metric {
	switch key {
	case "queue_delay_mean_s":
		return metrics.Of("delay_mean")
	case "step_decode_mean_s":
		return metrics.Metric{Name: "decode step", Stat: "mean", Unit: "ms", Scale: 1e3}
	case "step_mixed_mean_s":
		return metrics.Metric{Name: "mixed step", Stat: "mean", Unit: "ms", Scale: 1e3}
	}
	for _, m := range metrics.All() {
		if m.File == key {
			return m
		}
	}
	return metrics.Metric{Name: strings.ReplaceAll(key, "_", " "), Scale: 1}
}

// statOf returns the statistic of a metric for a reader, such as P99.
func statOf(m *metrics.Metric) string { return strings.Replace(m.Stat, "p", "P", 1) }

// inRow names a metric in a row, such as "TTFT mean, s".
func inRow(m *metrics.Metric) string {
	name := strings.TrimSpace(m.Name + " " + statOf(m))
	if m.Unit == "" {
		return name
	}
	return name + ", " + Short(m.Unit)
}

// off returns a cell with a relative error in %; a dash if there is none.
func off(e *float64) doc.Cell {
	if e == nil {
		return doc.None()
	}
	return doc.As(100**e, strings.Replace(fmt.Sprintf("%+.1f", 100**e), "-0.0", "+0.0", 1))
}
