package calibrate

import (
	"testing"
)

// Every point of a plan is one that its probe has, and appears once; every probe is measured.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		plan       Plan
		limits     Limits
		low, high  int
		most, pool int64
	}{
		{Full, fakeLimits, 1100, 1500, 256 * mib, 16},
		{Quick, fakeLimits, 250, 500, 64 * mib, 1},
		{Full, Limits{PoolGiB: 1, Threads: 1, DeviceBytes: leastDeviceBytes}, 800, 1400, 256 * mib, 1},
	} {
		all := points(c.plan, c.limits)
		if len(all) < c.low || len(all) > c.high {
			t.Errorf("%s: %d points, want %d to %d", c.plan, len(all), c.low, c.high)
		}
		seen, probed := map[string]bool{}, map[string]bool{}
		pool := int64(0)
		for _, p := range all {
			if seen[p.Key()] {
				t.Errorf("%s: %s twice", c.plan, p.Key())
			}
			seen[p.Key()], probed[p.Probe] = true, true
			if probe := probeOf(p.Probe); probe == nil || !probe.fits(p) {
				t.Errorf("%s: %s is no point of its probe", c.plan, p.Key())
			}
			switch p.Probe {
			case probeLoadFlash, probeLoadMemcpy:
				pool = max(pool, p.At("pool_mib"))
				if moved := p.At("blocks") * p.At("block_bytes"); moved > c.most ||
					moved > p.At("pool_mib")*mib {
					t.Errorf("%s: %s moves %d bytes", c.plan, p.Key(), moved)
				}
			case probeSaveFlash:
				if p.At("threads") > int64(c.limits.Threads) {
					t.Errorf("%s: %s on %d CPUs", c.plan, p.Key(), c.limits.Threads)
				}
			}
		}
		if pool > c.limits.PoolGiB*1024 || pool < c.pool*1024 && c.plan == Full {
			t.Errorf("%s: the largest pool is %d MiB, want %d GiB", c.plan, pool, c.pool)
		}
		for _, p := range Probes() {
			if !probed[p.Name] {
				t.Errorf("%s: %s is not measured", c.plan, p.Name)
			}
			if (p.setup == nil) == (p.serve == nil) {
				t.Errorf("%s: how is it measured?", p.Name)
			}
		}
	}
}

// A third is held out, always the same, evenly over groups, and never what must stay.
func TestSplit(t *testing.T) {
	var d data
	for group := range int64(5) {
		for i := range int64(12) {
			d = append(d, observation{Point: point(probeSaveGPU, "", 1+group, 1+i, basePool), seconds: 1})
		}
	}
	by := byAxis("block_bytes")
	first := func(at observation) bool { return at.At("blocks") == 1 }
	fit, held := d.split(by, 2, first)
	if len(held) != 20 || len(fit) != 40 {
		t.Errorf("%d held out of %d", len(held), len(d))
	}
	perGroup := map[string]int{}
	for _, at := range held {
		perGroup[by(at)]++
		if first(at) {
			t.Errorf("%s was to stay", at.Key())
		}
	}
	for g, n := range perGroup {
		if n != 4 {
			t.Errorf("group %s: %d held out, want 4", g, n)
		}
	}
	// Points measured in another order are split alike.
	reversed := make(data, len(d))
	for i, at := range d {
		reversed[len(d)-1-i] = at
	}
	_, again := reversed.split(by, 2, first)
	keys := map[string]bool{}
	for _, at := range again {
		keys[at.Key()] = true
	}
	for _, at := range held {
		if !keys[at.Key()] {
			t.Errorf("%s is held out in one order only", at.Key())
		}
	}
	if fit, held = d[:3].split(together, 3, nil); len(fit) != 3 || len(held) != 0 {
		t.Errorf("of 3 points %d stay, want all", len(fit))
	}
}
