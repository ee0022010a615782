//go:build gpu

package testkit

import (
	"testing"

	"github.com/sparseserve/sparseserve/cuda"
)

// OnGPU runs a test on the library's thread. A machine without library or GPU fails it.
func OnGPU(t *testing.T, f func(s *cuda.Session)) {
	t.Helper()
	library, err := cuda.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer library.Close()
	err = library.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		f(s)
		return s.DeviceSync()
	})
	if err != nil {
		t.Fatal(err)
	}
}
