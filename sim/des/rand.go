package des

import (
	"hash/fnv"
	"math/rand/v2"
)

// Rand returns the random stream of one subsystem, seeded by the run's seed and the subsystem's
// name. A draw in one subsystem does not change the draws of another.
func Rand(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(Hash(seed), Hash(h.Sum64())))
}

// Hash mixes its arguments into 64 well-spread bits (splitmix64 finaliser applied in turn). It
// is stable across runs and machines.
func Hash(xs ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range xs {
		h ^= x
		h += 0x9e3779b97f4a7c15
		h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9
		h = (h ^ (h >> 27)) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}
