package main

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"path"
	"regexp"
	"runtime"
	"strings"

	"github.com/BurntSushi/toml"
)

// sources is what decides the result of a simulated run: the code and the data of every
// package that it goes through, and the modules that they use.
//
//go:embed go.mod go.sum experiments/config/*.go experiments/run/*.go
//go:embed hw/*.go hw/models/*.toml hw/cards/*.toml hw/kernels/*.toml hw/engines/*.toml
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
		fmt.Fprintln(sum, name)
		return writeMeaning(sum, path.Ext(name), text)
	})
	if err != nil {
		panic(err) // an embedded file that cannot be read
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// csvComment is a line of a table that is not data.
var csvComment = regexp.MustCompile(`(?m)^#.*\n?`)

// writeMeaning writes what a file says without its comments.
func writeMeaning(w io.Writer, ext string, text []byte) error {
	switch ext {
	case ".go", ".cu", ".cuh", ".h": // C has the same comments and, for this purpose, tokens
		writeTokens(w, text)
		return nil
	case ".toml":
		var tree map[string]any
		if err := toml.Unmarshal(text, &tree); err != nil {
			return err
		}
		return json.NewEncoder(w).Encode(tree) // keys in order
	case ".csv":
		text = csvComment.ReplaceAll(text, nil)
	}
	_, err := w.Write(text)
	return err
}

// writeTokens writes the tokens of a source, one a line, without comments. Directives that
// embed files count by the files.
func writeTokens(w io.Writer, text []byte) {
	var s scanner.Scanner
	files := token.NewFileSet()
	ignored := func(token.Position, string) {} // of C, preprocessor lines
	s.Init(files.AddFile("", -1, len(text)), text, ignored, 0)
	for {
		_, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			return
		case tok == token.SEMICOLON:
			literal = ";" // or the end of a line
		case literal == "":
			literal = tok.String()
		}
		fmt.Fprintf(w, "%q\n", literal)
	}
}
