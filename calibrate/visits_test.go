package calibrate

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// Runs of restless points are gone over again and again, the others once, and
// each point's last visit is marked.
func TestVisits(t *testing.T) {
	a, b := point(probeSync, ""), point(probeLoadMemcpy, "", kib, 1, basePool)
	quiet, c := point(probeH2D, "", mib), point(probeSaveMemcpy, "", kib, 1, basePool)
	got := visits([]Point{a, b, quiet, c}, 2)
	want := []visit{{a, 2, false}, {b, 2, false}, {a, 2, true}, {b, 2, true}, {quiet, 1, true},
		{c, 2, false}, {c, 2, true}}
	if len(got) != len(want) {
		t.Fatalf("%d visits, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i].Key() != want[i].Key() || got[i].of != want[i].of || got[i].last != want[i].last {
			t.Errorf("visit %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// A restless point's record has the samples of all visits, which together take
// no more time than another point.
func TestVisitsAreGathered(t *testing.T) {
	t.Parallel()
	f := newFake(truth("a100-40gb"), 0.2, 4)
	var h heard
	m, o := fakeMachine(f), h.options("", Full)
	m.Origin.Plan, m.Origin.Date = string(Full), "2026-01-02"
	j, _, err := openJournal(filepath.Join(t.TempDir(), "card.csv"), m.Origin)
	if err != nil {
		t.Fatal(err)
	}
	failed, err := measure(context.Background(), m, o, j, map[string]time.Duration{})
	if err = errors.Join(err, failed.err(), j.close()); err != nil {
		t.Fatal(err)
	}
	if len(j.samples.Records) == 0 {
		t.Fatal("nothing was measured")
	}
	prepared := map[string]int{}
	for _, key := range f.prepared {
		prepared[key]++
	}
	for _, r := range j.samples.Records {
		want, least := 1, FullRule.Least
		if v := visits([]Point{r.Point}, FullRule.Visits); v[0].of > 1 {
			want, least = FullRule.Visits, FullRule.Visits*FullRule.Least
		}
		if probeOf(r.Point.Probe).fixed == clockSamples {
			least = clockSamples
		}
		if n := prepared[r.Point.Key()]; n != want || len(r.Samples) < least ||
			len(r.Samples) > FullRule.Most+FullRule.Visits {
			t.Errorf("%s: visited %d times, %d samples; want %d visits and at least %d samples",
				r.Point.Key(), n, len(r.Samples), want, least)
		}
	}
	v := visits([]Point{point(probeSync, "")}, 3)[0]
	if r := FullRule.of(v); 3*r.Time > FullRule.Time {
		t.Errorf("a visit may take %v of %v", r.Time, FullRule.Time)
	}
}

func TestChunksAreVisitedAgain(t *testing.T) {
	for p, want := range map[*Point]bool{
		{Probe: probeChunk, Axes: []Axis{{"tokens", 512}}}:               true,
		{Probe: probeLinears, Axes: []Axis{{"tokens", longLinears}}}:     true,
		{Probe: probeLinears, Axes: []Axis{{"tokens", longLinears - 1}}}: false,
		{Probe: probePrefill}: false,
	} {
		if isRestless(*p) != want {
			t.Errorf("%s is visited again: %v", p.Key(), !want)
		}
	}
}
