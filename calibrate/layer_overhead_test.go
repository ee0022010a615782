package calibrate

import (
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw"
)

// Each kind of layer has one row and a fit with points held out; samples without the servers
// give none.
func TestLayerOverheads(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds; make test-all runs it")
	}
	t.Parallel()
	c, err := calibrated()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Profile.LayerOverhead); n != len(overheadServers) {
		t.Errorf("%d rows of layer_overhead, want %d", n, len(overheadServers))
	}
	fits := 0
	for _, m := range c.models {
		if strings.HasPrefix(m.name, "layer_overhead.") {
			if fits++; len(m.fit) == 0 || len(m.held) == 0 {
				t.Errorf("%s: %d points fitted, %d held out", m.name, len(m.fit), len(m.held))
			}
		}
	}
	if fits != len(overheadServers) {
		t.Errorf("%d fits, want %d", fits, len(overheadServers))
	}
	got := *c.Profile
	if models := (layerOverhead{}).fit(&Samples{}, &got, source{"a test"}); len(models)+len(
		got.LayerOverhead) > 0 {
		t.Errorf("nothing measured: %d models, %d rows", len(models), len(got.LayerOverhead))
	}
}

// With the host alone, rows that were not measured stay as they are built in.
func TestHostKeepsOtherOverheads(t *testing.T) {
	t.Parallel()
	c, err := calibrated()
	if err != nil {
		t.Fatal(err)
	}
	s := recordsOf(c.Samples, probeLiveHeld)
	got := *c.Profile
	if models := (layerOverhead{host: true}).fit(s, &got, source{"a test"}); len(models) != 1 {
		t.Errorf("%d models, want that of sparse layers", len(models))
	}
	if notes := got.Provenance.Notes; !slices.ContainsFunc(notes, func(n string) bool {
		return strings.Contains(n, "layer_overhead.dense is as it is built in")
	}) {
		t.Errorf("notes %q, want one of dense layers", notes)
	}
	if len(got.LayerOverhead) != len(c.Profile.LayerOverhead) {
		t.Fatalf("%d rows, want %d", len(got.LayerOverhead), len(c.Profile.LayerOverhead))
	}
	for i, row := range got.LayerOverhead {
		was := c.Profile.LayerOverhead[i]
		sparse := row.Attention == hw.OverheadSparse && row.Lookup == "" && !row.Chunk
		if row.Value != was.Value || sparse != (row.Source != was.Source) {
			t.Errorf("%v, before %v", row, was)
		}
	}
}

// A server that the model cannot serve is noted and left out, and the others stay.
func TestImpossibleServerIsDropped(t *testing.T) {
	t.Parallel()
	c, err := calibrated()
	if err != nil {
		t.Fatal(err)
	}
	s := recordsOf(c.Samples, probeLiveDense, probeLiveHeld)
	for i := range s.Records {
		if p := &s.Records[i].Point; p.Probe == probeLiveDense {
			p.Axes = []Axis{{"layers", 0}, p.Axes[1]}
		}
	}
	got := *c.Profile
	got.Provenance.Notes = nil
	models := layerOverhead{}.fit(s, &got, source{"a test"})
	notes := got.Provenance.Notes
	if len(models) != 1 || len(notes) != 1 ||
		!strings.Contains(notes[0], "layer_overhead.dense is left out") {
		t.Errorf("%d models, %q", len(models), notes)
	}
}

// recordsOf are the samples of some probes alone.
func recordsOf(s *Samples, probes ...string) *Samples {
	some := &Samples{Origin: s.Origin}
	for _, r := range s.Records {
		if slices.Contains(probes, r.Point.Probe) {
			some.Records = append(some.Records, r)
		}
	}
	return some
}

func overheadServerOf(probe string) *overheadServer {
	return &overheadServers[slices.IndexFunc(
		overheadServers, func(k overheadServer) bool { return k.probe == probe })]
}
