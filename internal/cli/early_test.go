package cli

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sparseserve/sparseserve/experiments/config"
	"github.com/sparseserve/sparseserve/experiments/run"
)

// TestEarlyPictures: runs are drawn as they finish, in the order of the points, but not the last,
// after which all pictures are drawn; none too early, and none after an error.
func TestEarlyPictures(t *testing.T) {
	points := []config.Point{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	for _, c := range []struct {
		every time.Duration
		fails string // the picture that does
		want  []string
	}{
		{0, "", []string{"c", "ac", "acd"}},
		{0, "ac", []string{"c", "ac"}},
		{time.Hour, "", nil},
	} {
		var drawn []string
		made := early(points, c.every, func(done []run.Result) (err error) {
			names := ""
			for _, r := range done {
				names += r.Point.Name
			}
			if drawn = append(drawn, names); names == c.fails {
				err = errors.New("a full disk")
			}
			return err
		})
		for _, i := range []int{2, 0, 3, 1} {
			made(run.Result{Point: points[i]})
		}
		if !slices.Equal(drawn, c.want) {
			t.Errorf("every %v: drew %q, want %q", c.every, drawn, c.want)
		}
	}
}
