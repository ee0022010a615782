package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostPhrases is the limit of indirect phrases in 10,000 words, about 1,000 lines of comments.
const mostPhrases = 3

// indirect matches phrases that stand where a noun, a parameter or a cause belongs.
var indirect = regexp.MustCompile(`(?i)\b(so many|those of|of them|those that|in vain|nobody` +
	`|what (\w+ ){1,4}(says|has|lacks|is of)|one after (another|the other)|(are|is) of` +
	`|says (what|that|whether|why)|has (an?|the|its|it|each|every|all|what) (\w+ ){0,3}(be|leave|go|come))\b`)

// plain matches phrases that look indirect and are not: one of them, is of the same size.
var plain = regexp.MustCompile(`(?i)\b((one|two|half|all|any|each|most|none|some|%d) of them` +
	`|(are|is) of (the same|this|equal|different))\b`)

// prose is the text of one kind in one folder.
type prose struct {
	words   int
	phrases []string // with file and line
}

// TestWordsArePlain counts indirect phrases in comments, messages and documents.
func TestWordsArePlain(t *testing.T) {
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	all := map[string]*prose{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue // removed and not committed yet
		}
		for kind, passages := range passagesOf(name, string(text)) {
			part, _, _ := strings.Cut(filepath.Dir(name), "/")
			at := kind + " of " + part
			if all[at] == nil {
				all[at] = &prose{}
			}
			for _, p := range passages {
				all[at].add(name, p)
			}
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d kinds of text looked at", len(all))
	}
	for _, at := range slices.Sorted(maps.Keys(all)) {
		p := all[at]
		limit := max(1, p.words*mostPhrases/10_000)
		if len(p.phrases) > limit {
			t.Errorf("%s: %d indirect phrases in %d words, at most %d:\n%s", at, len(p.phrases), p.words,
				limit, strings.Join(p.phrases, "\n"))
		}
	}
}

// passage is running text and the line on which it begins.
type passage struct {
	line int
	text string
}

func (p *prose) add(file string, text passage) {
	joined := strings.Join(strings.Fields(text.text), " ")
	p.words += strings.Count(joined, " ") + 1
	for _, m := range indirect.FindAllStringIndex(joined, -1) {
		around := joined[max(0, m[0]-30):min(len(joined), m[1]+30)]
		if !plain.MatchString(joined[max(0, m[0]-5):min(len(joined), m[1]+10)]) {
			p.phrases = append(p.phrases, fmt.Sprintf("  %s:%d: %s", file, text.line, around))
		}
	}
}

// passagesOf returns the comments, messages and paragraphs of a file by their kind.
func passagesOf(name, text string) map[string][]passage {
	switch filepath.Ext(name) {
	case ".go":
		comments, messages := goProse(text)
		if strings.HasSuffix(name, "_test.go") {
			return map[string][]passage{"test comments": comments}
		}
		return map[string][]passage{"comments": comments, "messages": messages}
	case ".md":
		return map[string][]passage{"documents": paragraphs(text)}
	case ".cu", ".cuh", ".h":
		return map[string][]passage{"comments": lineComments(text, "//")}
	case ".toml", ".sh", ".mk":
		return map[string][]passage{"comments": lineComments(text, "#")}
	}
	return nil
}

// goProse returns the comments of Go source, adjacent lines together, and its strings of more than
// one word, sums of strings together.
func goProse(text string) (comments, messages []passage) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	var last token.Token
	lastComment := -2
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return comments, messages
		}
		line := file.Line(pos)
		switch {
		case tok == token.COMMENT && line == lastComment+1:
			comments[len(comments)-1].text += "\n" + strings.TrimPrefix(lit, "//")
		case tok == token.COMMENT:
			comments = append(comments, passage{line, strings.TrimPrefix(lit, "//")})
		case tok == token.STRING && last == token.ADD && len(messages) > 0:
			messages[len(messages)-1].text += lit[1 : len(lit)-1]
		case tok == token.STRING && strings.Contains(lit, " "):
			messages = append(messages, passage{line, lit[1 : len(lit)-1]})
		}
		if tok == token.COMMENT {
			lastComment = line
		}
		last = tok
	}
}

// lineComments returns the comments that begin with a mark, adjacent lines together.
func lineComments(text, mark string) (all []passage) {
	adjacent := false
	for i, line := range strings.Split(text, "\n") {
		_, comment, found := strings.Cut(line, mark)
		switch {
		case !found:
		case adjacent && strings.HasPrefix(strings.TrimSpace(line), mark):
			all[len(all)-1].text += "\n" + comment
		default:
			all = append(all, passage{i + 1, comment})
		}
		adjacent = found
	}
	return all
}

// paragraphs returns the paragraphs and table rows of Markdown, without blocks of code.
func paragraphs(text string) (all []passage) {
	code := false
	open := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		switch {
		case code || strings.TrimSpace(line) == "" || strings.HasPrefix(line, "```"):
			open = false
		case open && !strings.HasPrefix(line, "|"):
			all[len(all)-1].text += "\n" + line
		default:
			all, open = append(all, passage{i + 1, line}), true
		}
	}
	return all
}

// The test finds phrases over the end of a line and in sums of strings, and leaves code alone.
func TestPhrasesAreFound(t *testing.T) {
	for name, text := range map[string]string{
		"a.go":      "package a\n\n// a batch of so\n// many tokens\n",
		"b.go":      "package b\n\nconst x = \"those \" +\n\t\"that of \" +\n\t\"them\"\n",
		"a_test.go": "package a\n\nfunc f() {} // in vain\n",
		"a.md":      "A share of them,\nand those\nof a run.\n",
		"a.toml":    "x = 1 # what a run has\n",
		"a.cu":      "int x; // says whether\n",
	} {
		var p prose
		for _, passages := range passagesOf(name, text) {
			for _, one := range passages {
				p.add(name, one)
			}
		}
		if len(p.phrases) == 0 {
			t.Errorf("%s: no phrase found in %q", name, text)
		}
	}
	for name, text := range map[string]string{
		"a.go": "package a\n\n// a share of the time, which this of all has\nvar nobody int\n",
		"a.md": "One of the runs.\n\n```\nin vain\n```\n",
	} {
		var p prose
		for _, passages := range passagesOf(name, text) {
			for _, one := range passages {
				p.add(name, one)
			}
		}
		if len(p.phrases) > 0 {
			t.Errorf("%s: %v found in %q", name, p.phrases, text)
		}
	}
}
