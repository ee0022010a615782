package figures

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// A run that is alone has its queue, and the latencies of its requests over their arrival.
func TestOneRun(t *testing.T) {
	folder := t.TempDir()
	// The first waits 2 s and runs 6 s; the second runs from 4 s on; the third is rejected.
	const requests = `id,output_tokens,arrival_s,scheduled_s,first_token_s,last_token_s,rejected
1,4,0,2,3,8,
2,1,4,4,4.5,4.5,
3,5,6,,,,too long
`
	err := os.WriteFile(filepath.Join(folder, "requests.csv"), []byte(requests), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	pic, err := oneRun(&Run{folder: folder})
	if err != nil || len(pic.charts) != 3 {
		t.Fatalf("%d charts, %v", len(pic.charts), err)
	}
	for _, c := range []struct {
		line    int
		seconds float64 // the mean number of requests x the time
	}{{0, 2}, {1, 6.5}} {
		sum := 0.0
		for _, q := range pic.charts[0].curves[c.line].points {
			sum += q.mean * 8 / timelineBins
		}
		if math.Abs(sum-c.seconds) > 1e-9 {
			t.Errorf("%s: %g request-seconds, want %g", pic.charts[0].curves[c.line].series, sum, c.seconds)
		}
	}
	ttft, tbt := pic.charts[1].curves, pic.charts[2].curves
	if len(ttft) != 2 || ttft[0].points[0].mean != 3 || ttft[0].points[1].x != 4 ||
		ttft[1].series != "rejected" || ttft[1].points[0].x != 6 {
		t.Errorf("TTFT %+v", ttft)
	}
	if len(tbt[0].points) != 1 || math.Abs(tbt[0].points[0].mean-5000./3) > 1e-9 {
		t.Errorf("TBT %+v", tbt)
	}
	if none, err := oneRun(&Run{}); err != nil || len(none.charts) > 0 {
		t.Errorf("without requests: %d charts, %v", len(none.charts), err)
	}
}
