package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	keys := []string{"window", "window_blocks", "watermark", "rate", "vllm-s", "vllm-psa"}
	for word, want := range map[string]string{"windw": "window", "rat": "rate", "win": "window",
		"xyzzyplugh": "", "RATE": "rate", "": "", "watermarks": "watermark", "vllm-pas": "vllm-psa"} {
		if got := Name(word, keys); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

// TestEditDistance compares with the definition.
func TestEditDistance(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		word := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), 0, 6, -1)
		a, b := word.Draw(r, "a"), word.Draw(r, "b")
		if got, want := editDistance(a, b), distance(a, b); got != want {
			r.Errorf("distance of %q and %q is %d, want %d", a, b, got, want)
		}
	})
}

func distance(a, b string) int {
	if a == "" || b == "" {
		return len(a) + len(b)
	}
	d := min(distance(a[1:], b), distance(a, b[1:])) + 1
	change := 1
	if a[0] == b[0] {
		change = 0
	}
	d = min(d, distance(a[1:], b[1:])+change)
	if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
		d = min(d, distance(a[2:], b[2:])+1)
	}
	return d
}
