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

// sources is what decides the result of a simulated run: the code and the data of every
// package that it goes through, and the modules that they use.
//
//go:embed go.mod go.sum experiments/config/*.go experiments/run/*.go
//go:embed hw/*.go hw/models/*.toml hw/cards/*.toml hw/kernels/*.toml hw/engines/*.toml
//go:embed hw/drives/*.toml
//go:embed internal/files/*.go internal/nearest/*.go
//go:embed sim/*.go sim/*/*.go traces/*.go traces/*.csv
var sources embed.FS

// liveSources is what decides the result of a live run, too: what drives the GPU.
//
//go:embed cuda.mk cuda/*.go cuda/*.cu cuda/*.cuh cuda/*.h cuda/live/*.go cuda/live/*/*.go
//go:embed cuda/emulator/*.go cuda/weights/*.go
var liveSources embed.FS

// program names the version of the program by a digest of the sources and of the compiler:
// kept results are used again for as long as it stays the same. Comments and tests do not
// count, nor how the program was built and from which commit.
func program(sources fs.FS) string {
	sum := sha256.New()
	var said []byte
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
		if err != nil {
			return err
		}
		said = meaning(said[:0], path.Ext(name), text)
		fmt.Fprintf(sum, "%s\n%d\n", name, len(said))
		sum.Write(said)
		return nil
	})
	if err != nil {
		panic(err) // an embedded file that cannot be read
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// meaning appends what a file says without its comments.
func meaning(to []byte, ext string, text []byte) []byte {
	switch ext {
	case ".go", ".cu", ".cuh", ".h":
		return goSyntax.meaning(to, text)
	case ".toml":
		return tomlSyntax.meaning(to, text)
	case ".csv":
		return data(to, text)
	}
	return append(to, text...)
}
