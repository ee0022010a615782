package figures

import (
	"math"

	"gonum.org/v1/plot/vg"
)

// Shapes have about equal areas.

func circle(r vg.Length) []vg.Point   { return polygon(32, r, 0) }
func square(r vg.Length) []vg.Point   { return polygon(4, 1.22*r, math.Pi/4) }
func diamond(r vg.Length) []vg.Point  { return polygon(4, 1.3*r, 0) }
func triangle(r vg.Length) []vg.Point { return polygon(3, 1.4*r, math.Pi/2) }
func down(r vg.Length) []vg.Point     { return polygon(3, 1.4*r, -math.Pi/2) }

// polygon returns the corners of a regular polygon, starting at the angle.
func polygon(corners int, r vg.Length, angle float64) []vg.Point {
	out := make([]vg.Point, corners)
	for i := range out {
		a := angle + 2*math.Pi*float64(i)/float64(corners)
		out[i] = vg.Point{X: r * vg.Length(math.Cos(a)), Y: r * vg.Length(math.Sin(a))}
	}
	return out
}
