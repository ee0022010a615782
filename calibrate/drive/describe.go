package drive

import (
	"fmt"

	"github.com/sparseserve/sparseserve/hw"
	"github.com/sparseserve/sparseserve/internal/stats"
)

// Describe returns the drive with its name, and source as the place and date of the measurement.
func (f *Found) Describe(name, source string) *hw.Drive {
	measured := func(value float64, unit, what string) hw.Figure {
		return hw.Figure{Value: stats.Significant(value, 4), Unit: unit, From: hw.Measured,
			Source: what + "; " + source}
	}
	d := &hw.Drive{Name: name, Title: "measured: " + source,
		Size: measured(float64(f.Size)/1e9, "GB", "the file system")}
	d.Write = measured(f.Write/1e6, "MB/s",
		fmt.Sprintf("writes of 1 MiB past the page cache, %d waiting, until they are there", writeDepth))
	var reads, rate Depth
	for _, at := range f.Depths {
		if at.Reads > reads.Reads {
			reads = at
		}
		if at.Rate > rate.Rate {
			rate = at
		}
		d.Depths = append(d.Depths, hw.DriveDepth{Depth: at.Depth,
			Reads: measured(at.Reads, "1/s", "random reads of 4 KiB"),
			Rate:  measured(at.Rate/1e6, "MB/s", "random reads of 1 MiB")})
	}
	d.Read = measured(rate.Rate/1e6, "MB/s",
		fmt.Sprintf("random reads of 1 MiB past the page cache, %d waiting", rate.Depth))
	d.Reads = measured(reads.Reads, "1/s",
		fmt.Sprintf("random reads of 4 KiB past the page cache, %d waiting", reads.Depth))
	return d
}
