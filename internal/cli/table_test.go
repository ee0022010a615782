package cli

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/sim"
)

// Of a run that ended early it is not known whether it keeps the service level.
func TestServiceLevelOfInterruptedRuns(t *testing.T) {
	early := sim.Summary{System: "s", Rate: 1, Completed: 1, Interrupted: "interrupted"}
	met := sim.Summary{System: "s", Rate: 1, Completed: 1, SLOMet: new(true)}
	missed := sim.Summary{System: "s", Rate: 1, Completed: 1, SLOMet: new(false)}
	for want, sums := range map[string][]sim.Summary{
		"-": {early, early}, "met": {met, met}, "no": {missed}, "1/2": {met, missed},
		"1/1": {met, early}, "0/1": {missed, early},
	} {
		rows := rowsOf(sums)
		if got := sloLabel(&rows[0]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Tables have hits in the prefix cache where a run has one.
func TestPrefixHitsColumn(t *testing.T) {
	off := sim.Summary{System: "off", Rate: 1, Completed: 1}
	on := sim.Summary{System: "on", Rate: 1, Completed: 1,
		PrefixCache: &sim.PrefixStats{PromptTokens: 1000, HitTokens: 625}}
	var out strings.Builder
	printTable(&out, []sim.Summary{off, on}, "req/s")
	if text := out.String(); !strings.Contains(text, "hits %") || !strings.Contains(text, " 62.5 ") {
		t.Error(text)
	}
	out.Reset()
	printTable(&out, []sim.Summary{off}, "req/s")
	if text := out.String(); strings.Contains(text, "prefix") {
		t.Error(text)
	}
}
