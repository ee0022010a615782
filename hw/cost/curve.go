package cost

import "math"

// curve holds measured points in ascending x. It interpolates linearly in x, in log x, or in log x
// and log y.
type curve struct {
	x, y       []float64
	logX, logY []float64
}

// add appends a point.
func (c *curve) add(x, y float64) {
	c.x, c.logX = append(c.x, x), append(c.logX, math.Log(x))
	c.y, c.logY = append(c.y, y), append(c.logY, math.Log(y))
}

// segment returns i with x[i] <= at <= x[i+1], and the side of the data: -1 below, 0 within, +1
// above. A curve of one point has no segment.
func (c curve) segment(at float64) (i, side int) {
	n := len(c.x)
	switch {
	case at < c.x[0]:
		return 0, -1
	case at > c.x[n-1]:
		return n - 1, 1
	case at == c.x[n-1]:
		return n - 1, 0
	}
	for c.x[i+1] <= at {
		i++
	}
	return i, 0
}

// cost interpolates a cost that grows with work x: linear between points, which is exact for a
// fixed part plus a part per unit; the first point's cost below the data; the last point's rate
// beyond.
func (c curve) cost(at float64) (y float64, outside bool) {
	i, side := c.segment(at)
	switch {
	case side < 0:
		return c.y[0], true
	case side > 0:
		return c.y[i] * at / c.x[i], true
	case at == c.x[i]:
		return c.y[i], false
	}
	t := (at - c.x[i]) / (c.x[i+1] - c.x[i])
	return c.y[i] + t*(c.y[i+1]-c.y[i]), false
}

// logLinear interpolates y linearly in log x, clamped outside.
func (c curve) logLinear(at float64) (y float64, outside bool) {
	i, side := c.segment(at)
	if side != 0 || at == c.x[i] {
		return c.y[i], side != 0
	}
	t := (math.Log(at) - c.logX[i]) / (c.logX[i+1] - c.logX[i])
	return c.y[i] + t*(c.y[i+1]-c.y[i]), false
}

// power interpolates log y linearly in log x, clamped outside.
func (c curve) power(at float64) (y float64, outside bool) {
	i, side := c.segment(at)
	if side != 0 || at == c.x[i] {
		return c.y[i], side != 0
	}
	t := (math.Log(at) - c.logX[i]) / (c.logX[i+1] - c.logX[i])
	return math.Exp(c.logY[i] + t*(c.logY[i+1]-c.logY[i])), false
}

// last returns the largest x.
func (c curve) last() float64 { return c.x[len(c.x)-1] }
