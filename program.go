package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
)

// sources is what decides the result of a simulated run: the code and the data of every
// package that it goes through, and the versions of the modules that they use. Patterns that end in
// [^t].go, [^s]t.go and so on have between them all files but tests.
//
//go:embed go.mod traces/*.csv.gz
//go:embed hw/models/*.toml hw/cards/*.toml hw/kernels/*.toml hw/engines/*.toml hw/drives/*.toml
//go:embed experiments/config/*[^t].go experiments/config/*[^s]t.go experiments/config/*[^t]est.go
//go:embed experiments/run/*[^t].go experiments/run/*[^s]t.go experiments/run/*[^t]est.go
//go:embed hw/*[^t].go hw/*[^s]t.go hw/*[^e]st.go
//go:embed internal/files/*[^t].go internal/files/*[^s]t.go internal/nearest/*[^t]est.go
//go:embed internal/stats/*[^t].go internal/units/*[^t].go internal/warn/*[^t].go
//go:embed sim/*[^t].go sim/*[^s]t.go sim/*[^t]est.go
//go:embed sim/*/*[^t].go sim/*/*[^s]t.go sim/*/*[^t]est.go sim/*/*[^_]test.go
//go:embed traces/*[^t].go traces/*[^s]t.go
var sources embed.FS

// liveSources is what decides the result of a live run, too: what drives the GPU.
//
//go:embed cuda.mk cuda/*[^t].go cuda/*.cu cuda/*.cuh cuda/*.h
//go:embed cuda/live/*[^t].go cuda/live/*[^s]t.go cuda/live/*[^e]st.go cuda/live/*[^t]est.go
//go:embed cuda/live/*/*[^t].go cuda/emulator/*[^t].go cuda/weights/*[^t].go
var liveSources embed.FS

// program names the version of the program by a digest of the sources and of the compiler:
// kept results are used again for as long as it stays the same. Comments do not count, nor how
// the program was built and from which commit.
func program(sources fs.FS) string {
	sum := sha256.New()
	var text bytes.Buffer
	var said []byte
	fmt.Fprintln(sum, runtime.Version())
	err := fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		}
		file, err := sources.Open(name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text.Reset()
		text.Grow(int(info.Size()) + bytes.MinRead)
		if _, err := text.ReadFrom(file); err != nil {
			return err
		}
		said = meaning(slices.Grow(said[:0], text.Len()), path.Ext(name), text.Bytes())
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
	}
	return append(to, text...)
}
