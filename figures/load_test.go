package figures

import "testing"

// Closed loops are drawn against their clients, other runs against their rate.
func TestLoadOfRuns(t *testing.T) {
	open := panels([]Run{{Completed: 1, Rate: 0.5}})
	if at := load(&open[0].runs[0]); at != 0.5 || loadLabel(open[0].runs) != "Req Rate (req/s)" {
		t.Errorf("a rate is drawn at %g on %q", at, loadLabel(open[0].runs))
	}
	turns := []Run{{Completed: 1, Rate: 0.5, trace: "sessions"}}
	if loadLabel(turns) != "Session Rate (sessions/s)" || loadName(&turns[0]) != "0.5 sessions/s" {
		t.Errorf("sessions are drawn on %q, as %q", loadLabel(turns), loadName(&turns[0]))
	}
	closed := panels([]Run{{Completed: 1, Concurrency: 16}, {Completed: 1, Concurrency: 4}})
	if at := load(&closed[0].runs[0]); at != 16 ||
		loadLabel(closed[0].runs) != "Concurrency (clients)" {
		t.Errorf("a closed loop is drawn at %g on %q", at, loadLabel(closed[0].runs))
	}
	for _, m := range metrics() {
		if c := m.picture(closed, abscissaOf(closed[0].runs)).charts[0]; c.x != "Concurrency (clients)" ||
			len(c.curves) != 1 || c.curves[0].points[0].x != 4 {
			t.Errorf("%s: on %q at %+v", m.file, c.x, c.curves)
		}
	}
}
