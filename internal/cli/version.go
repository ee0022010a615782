package cli

import (
	"fmt"
	"runtime/debug"
)

// commit is set by the linker (Makefile, Dockerfile) for builds in which Go records no commit.
var commit string

type versionCmd struct{}

// Run prints one line: the module's version, its commit and date if known, and the Go version.
func (versionCmd) Run(a *App) error {
	info, known := debug.ReadBuildInfo()
	_, err := fmt.Fprintln(a.Stdout, versionLine(info, known, commit))
	return err
}

func versionLine(info *debug.BuildInfo, known bool, linked string) string {
	if !known {
		return "sparseserve, built without module information"
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	line := "sparseserve " + info.Main.Version
	if commit := setting["vcs.revision"]; commit != "" {
		line += ", commit " + commit[:min(12, len(commit))]
		if setting["vcs.modified"] == "true" {
			line += " with changes"
		}
		line += " of " + setting["vcs.time"]
	} else if linked != "" {
		line += ", commit " + linked
	} else {
		line += ", commit unknown"
	}
	return line + ", " + info.GoVersion
}
