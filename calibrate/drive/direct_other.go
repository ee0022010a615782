//go:build !linux

package drive

import (
	"errors"
	"os"
)

var errLinux = errors.New("a drive is measured on Linux, past the page cache")

func openDirect(string, int) (*os.File, error) { return nil, errLinux }
func drop(*os.File) error                      { return errLinux }
func capacity(string) (int64, error)           { return 0, errLinux }
func aligned(int) ([]byte, error)              { return nil, errLinux }
func free([]byte) error                        { return nil }
