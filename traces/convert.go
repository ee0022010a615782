package traces

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Convert writes a trace in the project's own CSV and returns how many requests it has and what
// to be warned of. An empty format recognises the input. Times count from the first request; a
// trace without times makes a file without them. The file appears whole or not at all, and may
// replace its input.
func Convert(in, format, out string) (requests int, warnings []string, err error) {
	if format != "" {
		if err := oneOf("format", format, FormatNames()); err != nil {
			return 0, nil, err
		}
	}
	src, _, err := openPath(in, wholeFile(format))
	if err != nil {
		return 0, nil, err
	}
	defer src.Close()
	f, err := renameio.NewPendingFile(out, renameio.WithTempDir(filepath.Dir(out)), renameio.WithPermissions(0o644))
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", out, err)
	}
	defer f.Cleanup()
	if requests, err = writeOwn(f, src); err != nil {
		return 0, nil, err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", out, err)
	}
	return requests, src.warnings(), nil
}

// writeOwn writes every request of a source and returns their number.
func writeOwn(w io.Writer, src source) (int, error) {
	b := bufio.NewWriterSize(w, 64<<10)
	c := csv.NewWriter(b)
	header := []string{ownCSV.time, ownCSV.prompt, ownCSV.output, ownCSV.set}
	from := 1
	if src.timed() {
		from = 0
	}
	if err := c.Write(header[from:]); err != nil {
		return 0, err
	}
	row := make([]string, len(header))
	for n := 0; ; n++ {
		a, err := src.next()
		if err == io.EOF {
			c.Flush()
			if err := c.Error(); err != nil {
				return 0, err
			}
			return n, b.Flush()
		}
		if err != nil {
			return 0, err
		}
		row[0], row[1], row[2], row[3] = decimal(a.At), strconv.Itoa(a.Prompt), strconv.Itoa(a.Output), a.Set
		if err := c.Write(row[from:]); err != nil {
			return 0, err
		}
	}
}

// decimal writes a time in seconds, exactly.
func decimal(t des.Time) string {
	return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second)
}
