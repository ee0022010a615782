package figures

import (
	"fmt"
	"os"
)

// Draw writes ttft, throughput, tbt and time as PNG and CSV into dir and
// returns the paths of the PNGs. Points whose queue was unstable are hollow.
func Draw(dir string, runs []Run) ([]string, error) {
	p := panels(runs)
	if len(p) == 0 {
		return nil, fmt.Errorf("%s: no run finished a request, so there is nothing to draw", dir)
	}
	var pictures []picture
	for _, m := range metrics() {
		pictures = append(pictures, m.picture(p))
	}
	return writeAll(dir, append(pictures, attribution(p)...))
}

func writeAll(dir string, pictures []picture) ([]string, error) {
	var files []string
	for i := range pictures {
		path, err := pictures[i].write(dir)
		if err != nil {
			return files, err
		}
		files = append(files, path)
	}
	return files, nil
}

// DrawFolders draws the runs of result folders together, a panel for each
// model, into dir.
func DrawFolders(dir string, folders []string) ([]string, error) {
	var runs []Run
	for _, f := range folders {
		more, err := Read(f)
		if err != nil {
			return nil, err
		}
		for i := range more {
			more[i].System = label(more[i].System) + more[i].variant()
		}
		runs = append(runs, more...)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return Draw(dir, runs)
}

// panelTitle letters panels where there are several.
func panelTitle(i, of int, name string) string {
	if of < 2 {
		return ""
	}
	return fmt.Sprintf("(%c) %s", 'a'+i, name)
}
