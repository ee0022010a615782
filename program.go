package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"
)

// sources is what kept results are made from: the code and the data of every
// package that a simulated run goes through, and the modules that they use.
//
//go:embed go.mod go.sum experiments/*.go
//go:embed hw/*.go hw/models/*.toml hw/cards/*.toml hw/kernels/*.toml hw/engines/*.toml
//go:embed sim/*.go sim/*/*.go traces/*.go traces/*.csv
var sources embed.FS

// liveSources is what live runs are made from besides: what drives the GPU.
//
//go:embed cuda.mk cuda/*.go cuda/*.cu cuda/*.cuh cuda/*.h cuda/live/*.go cuda/live/*/*.go
//go:embed cuda/emulator/*.go cuda/weights/*.go
var liveSources embed.FS

// program names the version of the program by a digest of the sources and of
// the compiler: kept results are used again for as long as it stays the same.
// Tests count for nothing, nor do how the program was built and from which
// commit.
func program(sources fs.FS) string {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path.Base(name) == "testdata":
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(sources, name)
		fmt.Fprintf(sum, "%s %d\n", name, len(text))
		sum.Write(text)
		return err
	})
	if err != nil {
		panic(err) // an embedded file that cannot be read
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
