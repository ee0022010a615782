//go:build !amd64

// Package spin is for threads that wait for each other without sleeping.
package spin

// Pause does nothing where no instruction says that a thread spins.
func Pause() {}
