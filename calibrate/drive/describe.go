package drive

import (
	"fmt"
	"math"
	"strings"

	"github.com/sparseserve/sparseserve/hw"
)

// Describe returns the drive with its name, and source as the place and date of the measurement.
func (f *Found) Describe(name, source string) *hw.Drive {
	measured := func(value float64, unit, what string) hw.Figure {
		return hw.Figure{Value: digits(value), Unit: unit, From: hw.Measured,
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

// digits rounds to four significant digits.
func digits(x float64) float64 {
	if x == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// File returns the text of a drive's file.
func File(d *hw.Drive) []byte {
	var b strings.Builder
	figure := func(key string, f hw.Figure) {
		fmt.Fprintf(&b, "%s = { value = %g, unit = %q, from = %q, source = %q }\n", key, f.Value,
			f.Unit, f.From, f.Source)
	}
	fmt.Fprintf(&b, "name = %q\ntitle = %q\n\n", d.Name, d.Title)
	figure("size", d.Size)
	figure("read", d.Read)
	figure("write", d.Write)
	figure("reads", d.Reads)
	b.WriteString("# reads that wait at once where prefixes are loaded; without it as many as these " +
		"figures need\n# depth = 8\n")
	for i := range d.Depths {
		fmt.Fprintf(&b, "\n[[depths]]\ndepth = %d\n", d.Depths[i].Depth)
		figure("reads", d.Depths[i].Reads)
		figure("rate", d.Depths[i].Rate)
	}
	return []byte(b.String())
}
