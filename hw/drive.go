package hw

import (
	"embed"

	"github.com/sparseserve/sparseserve/hw/builtin"
	"github.com/sparseserve/sparseserve/internal/tomlfile"
)

//go:embed drives/*.toml
var driveFiles embed.FS

// Drive is an SSD of the host. Its GPUs share it.
type Drive struct {
	Name  string `toml:"name" want:"a name"`
	Title string `toml:"title"`
	Size  Figure `toml:"size" dim:"size"`
	Read  Figure `toml:"read" dim:"rate"`
	Write Figure `toml:"write" dim:"rate"`
	// Reads is the number of reads per second with a queue deep enough to reach it.
	Reads Figure `toml:"reads" dim:"operations"`
	// Depth is the number of prefix reads in flight; 0: enough to reach Read and Reads. The
	// performance at Depth is that of the largest entry of Depths, in ascending order, up to it.
	Depth  int          `toml:"depth,omitempty"`
	Depths []DriveDepth `toml:"depths,omitempty" rising:"depth"`
}

// DriveDepth is the performance of a drive at one depth of waiting reads.
type DriveDepth struct {
	Depth int    `toml:"depth"`
	Reads Figure `toml:"reads" dim:"operations"` // of 4 KiB, a second
	Rate  Figure `toml:"rate" dim:"rate"`        // of reads of 1 MiB
}

// Reading returns bytes/s and reads/s at the configured depth.
func (d *Drive) Reading() (rate, reads float64) {
	rate, reads = d.Read.SI(), d.Reads.SI()
	for i := len(d.Depths) - 1; i >= 0 && d.Depth > 0; i-- {
		if at := &d.Depths[i]; at.Depth <= d.Depth {
			return min(rate, at.Rate.SI()), min(reads, at.Reads.SI())
		}
	}
	return rate, reads
}

// LoadDrive returns a built-in drive by name, or reads a drive file.
func LoadDrive(nameOrPath string) (*Drive, error) {
	return builtin.Load[Drive]("drive", driveFiles, "drives", nameOrPath)
}

// DriveNames returns the names of the built-in drives.
func DriveNames() []string { return builtin.Names(driveFiles, "drives") }

func (d *Drive) Validate() error {
	if d.Depth < 0 || d.Depth > 0 && (len(d.Depths) == 0 || d.Depth < d.Depths[0].Depth) {
		return tomlfile.Wrong("depth", "want 0, or a depth of [[depths]] and more, got %d", d.Depth)
	}
	return check(d)
}
