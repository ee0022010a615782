package hw

// copies is the cost of one memcpy per block in addition to the bytes.
type copies struct {
	base, call float64 // seconds per batch and per call
}

func newCopies(base, call Figure) copies { return copies{base.optional(), call.SI()} }

// seconds returns 0 for the zero value: engines that do not use memcpy.
func (c *copies) seconds(n int64) float64 { return c.base + float64(n)*c.call }
