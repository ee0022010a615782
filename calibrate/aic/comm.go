package aic

import (
	"fmt"
	"slices"

	"github.com/sparseserve/sparseserve/hw"
)

// reduceColumns are the columns of custom_allreduce_perf. message_size counts elements, not bytes.
type reduceColumns struct {
	Type    string `parquet:"allreduce_dtype"`
	GPUs    int64  `parquet:"num_gpus"`
	Message int64  `parquet:"message_size"`
	Backend string `parquet:"backend"`
}

// allReduce imports the all-reduces that run in CUDA graphs.
func (im *importer) allReduce() error {
	const operation = "custom_allreduce_perf"
	rows, err := read[reduceColumns](im.tables, operation)
	if err != nil {
		return err
	}
	if rows == nil {
		im.missing(operation, "all-reduces keep the card's times")
		return nil
	}
	times := map[hw.Sizes]float64{}
	var kept []row[reduceColumns]
	for _, r := range rows {
		switch {
		case r.of.Type != "bfloat16" && r.of.Type != "float16":
			im.skip("all-reduces of " + r.of.Type)
		case r.of.Backend != "vllm_graph":
			im.skip("all-reduces of " + r.of.Backend)
		case r.of.GPUs < 2 || r.of.Message < 1:
			return im.fault(operation, r.line, "want 2 GPUs or more and a message, got %d and %d", r.of.GPUs,
				r.of.Message)
		case 2*r.of.Message <= 1<<28: // hidden states of a step are smaller
			times[hw.Sizes{float64(r.of.GPUs), float64(2 * r.of.Message)}] = r.Latency
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return fmt.Errorf("tables: %s: no all-reduce of 16 bits in a CUDA graph (backend vllm_graph) "+
			"in %s", im.tables.dir, operation)
	}
	g := hw.Grid{Kernel: hw.GridAllReduce, Type: "bf16", Axes: []hw.Axis{
		{Size: "gpus", At: valuesOf(times, 0)}, {Size: "bytes", At: valuesOf(times, 1)}}}
	return im.grid(g, times, kept[0].common, kernelsOf(kept))
}

// valuesOf returns the distinct values of one size in a table in ascending order.
func valuesOf(times map[hw.Sizes]float64, size int) (all []float64) {
	for at := range times {
		all = append(all, at[size])
	}
	slices.Sort(all)
	return slices.Compact(all)
}
