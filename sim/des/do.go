package des

// Do calls f for 0 to n-1, possibly at the same time, and returns when all are done. Each is
// roughly the wall-clock time of one call of f. Outcomes do not depend on it.
type Do func(n int, each Time, f func(i int))

// OneByOne is the Do of the caller's thread.
func OneByOne(n int, _ Time, f func(i int)) {
	for i := range n {
		f(i)
	}
}
