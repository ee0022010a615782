package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Limits of what is tracked: what a command can make anew does not belong to the tree.
const (
	maxFileBytes = 1 << 20
	maxTreeBytes = 20_000_000
)

// TestTrackedFilesAreSmall holds the tracked files to both limits. Outside a checkout there is
// nothing to look at.
func TestTrackedFilesAreSmall(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	var tree int64
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		info, err := os.Lstat(name)
		if err != nil {
			continue // removed and not committed yet
		}
		if tree += info.Size(); info.Size() > maxFileBytes {
			t.Errorf("%s has %d bytes, more than %d: compress it, or have a command make it", name,
				info.Size(), maxFileBytes)
		}
	}
	if tree > maxTreeBytes {
		t.Errorf("tracked files have %d bytes, more than %d", tree, maxTreeBytes)
	}
}
