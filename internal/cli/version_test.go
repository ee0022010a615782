package cli

import (
	"runtime/debug"
	"testing"
)

func TestVersionLine(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26", Main: debug.Module{Version: "v1.2.3"}}
	for want, settings := range map[string][]debug.BuildSetting{
		"sparseserve v1.2.3, commit fedcba987654-dirty, go1.26": nil,
		"sparseserve v1.2.3, commit 0123456789ab of 2026-01-02T03:04:05Z, go1.26": {
			{Key: "vcs.revision", Value: "0123456789abcdef"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "false"}},
		"sparseserve v1.2.3, commit 01 with changes of 2026-01-02T03:04:05Z, go1.26": {
			{Key: "vcs.revision", Value: "01"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"},
			{Key: "vcs.modified", Value: "true"}},
	} {
		info.Settings = settings
		if got := versionLine(info, true, "fedcba987654-dirty"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	info.Settings = nil
	want := "sparseserve v1.2.3, commit unknown, go1.26"
	if got := versionLine(info, true, ""); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := versionLine(nil, false, "0123"); got != "sparseserve, built without module information" {
		t.Error(got)
	}
}
