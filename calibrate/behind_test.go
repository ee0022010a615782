package calibrate

import (
	"math"
	"slices"
	"testing"
)

// A lookup behind the weights of a layer is what the profile gets, and one with
// its tables in the L2 where only that was measured, as by older builds.
func TestLookupBehindWeightsStandsForTheWarmOne(t *testing.T) {
	t.Parallel()
	want := truth("a100-40gb").Host
	all := measured(t, Quick, newFake(truth("a100-40gb"), 0, 1))
	old := &Samples{Origin: all.Origin, Records: slices.DeleteFunc(slices.Clone(all.Records), func(r Record) bool { return slices.Contains(behindProbes, r.Point.Probe) })}
	if len(old.Records) == len(all.Records) {
		t.Fatal("nothing was measured behind weights")
	}
	got, warm := fitted(t, all).Profile.Host, fitted(t, old).Profile.Host
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"lookup", got.Lookup.SI(), want.Lookup.SI()},
		{"lookup_miss", got.LookupMiss.SI(), want.LookupMiss.SI()},
		{"lookup_block", got.LookupBlock.SI(), want.LookupBlock.SI()},
		{"list_copy", got.ListCopy.SI(), want.ListCopy.SI()},
		{"kv_write", got.KVWrite.SI(), want.KVWrite.SI()},
		{"lookup, warm", warm.Lookup.SI(), want.Lookup.SI() - fakeWarm},
		{"lookup_miss, warm", warm.LookupMiss.SI(), want.LookupMiss.SI() + 32*want.LookupBlock.SI()}, // of 8, 32 and 128 blocks
		{"list_copy, between two kernels", warm.ListCopy.SI(), want.ListCopy.SI()},
	} {
		if !(math.Abs(c.got/c.want-1) < 0.01) {
			t.Errorf("%s is %.3g s, want %.3g", c.name, c.got, c.want)
		}
	}
}

// Where the linears' noise leaves nothing of what is behind them, the warm one
// stays.
func TestLookupBehindNoise(t *testing.T) {
	t.Parallel()
	f := newFake(truth("a100-40gb"), 0, 1)
	f.bend = func(p Point) float64 {
		if p.Probe == probeBehindLists {
			return 2
		}
		return 1
	}
	got := fitted(t, measured(t, Quick, f)).Profile.Host
	if want := f.truth.Host.Lookup.SI() - fakeWarm; !(math.Abs(got.Lookup.SI()/want-1) < 0.01) {
		t.Errorf("lookup is %.3g s, want %.3g", got.Lookup.SI(), want)
	}
	if want := f.truth.Host.KVWrite.SI(); !(math.Abs(got.KVWrite.SI()/want-1) < 0.01) {
		t.Errorf("kv_write is %.3g s, want %.3g", got.KVWrite.SI(), want)
	}
}
