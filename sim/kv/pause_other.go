//go:build !amd64

package kv

// Pause does nothing where no instruction says that a thread spins.
func Pause() {}
