package des

// Do calls f for 0 to n-1, possibly in parallel, and returns when all calls are done. each is the
// approximate wall-clock time of one call. It does not affect results.
type Do func(n int, each Time, f func(i int))

// OneByOne is a Do that calls f serially in the caller's thread.
func OneByOne(n int, _ Time, f func(i int)) {
	for i := range n {
		f(i)
	}
}
