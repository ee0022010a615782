//go:build !amd64

package parallel

// Pause does nothing on CPUs without a spin-wait hint.
func Pause() {}
