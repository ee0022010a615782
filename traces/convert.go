package traces

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Convert writes a trace in the project's own CSV and returns how many requests it has and what
// to be warned of. An empty format recognises the input. Times count from the first request; a
// trace without times makes a file without them. The file appears whole or not at all. It is never
// the input itself, nor anything but a regular file.
func Convert(in, format, out string) (requests int, warnings []string, err error) {
	if format != "" {
		if err := oneOf("format", format, FormatNames()); err != nil {
			return 0, nil, err
		}
	}
	o := wholeFile(format)
	o.once = true
	src, _, err := openPath(in, o)
	if err != nil {
		return 0, nil, err
	}
	defer src.Close()
	if err := checkTarget(in, out); err != nil {
		return 0, nil, err
	}
	f, err := renameio.NewPendingFile(out, renameio.WithTempDir(filepath.Dir(out)),
		renameio.WithPermissions(0o644))
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

// ConvertTo is Convert to a stream.
func ConvertTo(w io.Writer, in, format string) (warnings []string, err error) {
	o := wholeFile(format)
	o.once = true
	src, _, err := openPath(in, o)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	if _, err := writeOwn(w, src); err != nil {
		return nil, err
	}
	return src.warnings(), nil
}

// checkTarget refuses to replace the input, or what is not a file: a link, as /dev/stdout is one,
// would itself be replaced.
func checkTarget(in, out string) error {
	there, err := os.Lstat(out)
	if err != nil {
		return nil // new, or an error that writing it finds
	}
	if !there.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file; - writes to standard output", out)
	}
	if source, err := os.Stat(in); err == nil && os.SameFile(source, there) {
		return fmt.Errorf("%s: is the trace that is converted; choose another name", out)
	}
	return nil
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
		row[0], row[1], row[2], row[3] = decimal(a.At), strconv.Itoa(a.Prompt),
			strconv.Itoa(a.Output), a.Set
		if err := c.Write(row[from:]); err != nil {
			return 0, err
		}
	}
}

// decimal writes a time in seconds, exactly.
func decimal(t des.Time) string {
	return fmt.Sprintf("%d.%09d", t/des.Second, t%des.Second)
}
