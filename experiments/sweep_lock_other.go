//go:build !unix

package experiments

import "os"

// lockFolder opens the lock's file: nothing keeps two processes apart here.
func lockFolder(path string, _ bool) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}
