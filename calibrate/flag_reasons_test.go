package calibrate

import (
	"strings"
	"testing"
)

func linear1(tokens int64, us float64) observation {
	return observation{Point: point(probeLinears, "llama2-7b", tokens), seconds: us * 1e-6}
}

// A flagged curve names the point at which the library chose a worse kernel, and
// is silent on one that rises.
func TestReasonOfACurve(t *testing.T) {
	rising := data{linear1(256, 200), linear1(384, 270), linear1(448, 300), linear1(512, 350)}
	if why := falls(rising, "tokens"); why != "" {
		t.Errorf("nothing falls, yet %q", why)
	}
	rising[2].seconds = 420e-6
	if why := falls(rising, "tokens"); !strings.Contains(
		why, "448 tokens take 420.0 us and 512 take 350.0 us") {
		t.Errorf("got %q", why)
	}
}

// The reason of a scatter is the pair of points of the same bytes and threads
// that differ most; blocks under 4 KiB cost more by nature.
func TestReasonOfAScatter(t *testing.T) {
	save := func(block, blocks, threads int64, us float64) observation {
		return observation{Point: point(probeSaveFlash, "", block, blocks, basePool, threads),
			seconds: us * 1e-6}
	}
	d := data{save(2*kib, 4096, 1, 900), save(4*kib, 2048, 1, 500), save(8*kib, 1024, 1, 600),
		save(8*kib, 1024, 2, 100), save(8*kib, 2048, 1, 1500)}
	if why := unlike(d); !strings.Contains(why, "up to 1.20 times") ||
		!strings.Contains(why, "block_bytes=8192 blocks=1024") {
		t.Errorf("got %q", why)
	}
}
