package main

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the longest line of a source, a tab being one column.
const columns = 100

// sources are the endings of what is written by hand. Data of tests and results are not.
var sourceEndings = []string{".go", ".cu", ".cuh", ".h", ".toml", ".sh", ".mk", ".py", ".yaml",
	".md"}

// TestLinesAreShort holds code, comments and prose to a width. Raw strings may be wider: struct
// tags, and data of tests. So may tables, code, generated blocks and single links of documents.
func TestLinesAreShort(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	checked := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if !ofWidth(name) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // removed and not committed yet
		}
		checked++
		for _, line := range wide(name, text) {
			t.Errorf("%s:%d is wider than %d columns", name, line, columns)
		}
	}
	if checked < 100 {
		t.Errorf("only %d files looked at", checked)
	}
}

func TestWide(t *testing.T) {
	long := strings.Repeat("é", columns+1)
	words := strings.Repeat("a word ", columns/4)
	for name, text := range map[string]string{"a.toml": "\n# " + long[2*2:] + "\n#\n",
		"a.go": "//\n//" + long,
		"b.go": "package b\n\nconst x = \"" + long + "\"\n",
		"a.md": "# A page\n" + words + "\n",
		"b.md": "<!-- a -->\n<!-- /a -->\n```\n```\n" + words + "\n"} {
		if got := wide(name, []byte(text)); len(got) != 1 || got[0] < 2 {
			t.Errorf("%s: lines %v are wide, want one", name, got)
		}
	}
	for name, text := range map[string]string{"a.toml": long[2:], "a.go": "package a\n\nconst x = `" +
		long + "`\n", "a.md": "| " + words + "|\n", "b.md": "```\n" + words + "\n```\n",
		"c.md": "<!-- a -->\n" + words + "\n<!-- /a -->\n", "d.md": "- [a](" + long + ")\n"} {
		if got := wide(name, []byte(text)); len(got) > 0 {
			t.Errorf("%s: lines %v are wide, want none", name, got)
		}
	}
}

// ofWidth reports whether a tracked file is held to the width.
func ofWidth(name string) bool {
	if strings.Contains(name, "testdata/") || strings.HasPrefix(name, "experiments/validation/") {
		return false
	}
	return name == "Makefile" || strings.HasPrefix(name, ".ci/") ||
		slices.Contains(sourceEndings, filepath.Ext(name))
}

// wide returns the lines beyond the width, from 1.
func wide(name string, text []byte) (lines []int) {
	start := 0
	fixed := fixedLines{}
	for i, line := range bytes.Split(text, []byte("\n")) {
		free := filepath.Ext(name) != ".md" || !fixed.has(string(line))
		if free && utf8.RuneCount(line) > columns {
			beyond := start
			for range columns {
				_, n := utf8.DecodeRune(text[beyond:])
				beyond += n
			}
			if filepath.Ext(name) != ".go" || !inRawString(text, beyond) {
				lines = append(lines, i+1)
			}
		}
		start += len(line) + 1
	}
	return lines
}

// fixedLines finds the lines of a document that cannot be wrapped.
type fixedLines struct {
	code  bool
	block string // generated block
}

// has takes the next line of the document and reports whether it has to stay on one line.
func (f *fixedLines) has(line string) bool {
	switch name, mark := strings.CutPrefix(line, "<!-- "); {
	case strings.HasPrefix(line, "```"):
		f.code = !f.code
	case mark && f.block == "":
		f.block = strings.TrimSuffix(name, " -->")
	case mark && name == "/"+f.block+" -->":
		f.block = ""
	}
	return f.code || f.block != "" || strings.HasPrefix(line, "|") ||
		!strings.Contains(strings.TrimPrefix(strings.TrimSpace(line), "- "), " ")
}

// inRawString reports whether an offset of Go source is within a raw string.
func inRawString(text []byte, offset int) bool {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		at := file.Offset(pos)
		if tok == token.EOF || at > offset {
			return false
		}
		if tok == token.STRING && lit[0] == '`' && offset < at+len(lit) {
			return true
		}
	}
}
