package config

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// A fleet has one run per number of replicas; the run of one server has the configuration, name and
// hash that it has without a fleet.
func TestFleetPoints(t *testing.T) {
	load := func(text string) []Point {
		c, err := Load(testkit.Write(t, "exp.toml", text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	const rest = "[workload]\nrate = 2\n[system]\npreset = \"vllm\"\n"
	alone := load(rest)
	fleet := load(rest + "[fleet]\nreplicas = [1, 4]\nrouter = \"session\"\n")
	points := fleet
	if len(points) != 2 || points[0].Name != alone[0].Name || points[1].Name != "vllm-x4-2-s1" {
		t.Fatalf("points %+v", points)
	}
	hash := func(p *Point) string {
		h, err := NewHasher().Hash(p)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash(&points[0]) != hash(&alone[0]) || hash(&points[1]) == hash(&alone[0]) {
		t.Error("one replica of a fleet is another run than a server, or four are the same")
	}
	if text, err := alone[0].TOML(); err != nil || strings.Contains(string(text), "fleet") {
		t.Errorf("%v\n%s", err, text)
	}
}

// What a run resolves to makes the same run.
func TestFleetResolves(t *testing.T) {
	c, err := Load(testkit.Write(t, "exp.toml", "[fleet]\nreplicas = [2, 3]\nrouter = "+
		"\"least-tokens\"\nfail = [[120, 1, 60.5], [300, 0, 1]]\ndrain = [[300, 1]]\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range c {
		text, err := p.TOML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := LoadPoint(testkit.Write(t, "point.toml", string(text)))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if more, _ := again.TOML(); string(more) != string(text) || len(again.Fleet.Fail) != 2 ||
			len(again.Fleet.Drain) != 1 {
			t.Fatalf("%s\nresolves to\n%s", text, more)
		}
	}
}

// A record describes one server.
func TestFleetIsNoServer(t *testing.T) {
	sets := []string{"model=llama2-7b", "gpu=h100-80gb"}
	for _, set := range []string{"fleet.replicas=2", "fleet.fail=[[1,0,1]]"} {
		_, err := LoadServer("", append(sets, set), false, "")
		if err == nil || !strings.Contains(err.Error(), set[:strings.Index(set, "=")]) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", set, err)
		}
	}
	if _, err := LoadServer("", append(sets, "fleet.replicas=1"), false, ""); err != nil {
		t.Error(err)
	}
}
