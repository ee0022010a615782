package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
)

// blockOf returns a generated block of a document.
func blockOf(t *testing.T, file, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "<!-- "+name+" -->\n")
	inside, _, ok := strings.Cut(rest, "<!-- /"+name+" -->")
	if !ok {
		t.Fatalf("%s has no lines <!-- %s --> and <!-- /%[2]s -->", file, name)
	}
	return inside
}

// page is what a page has of an answer.
func page(t *testing.T, d *doc.Doc) string {
	t.Helper()
	text, err := onPage(d)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The pages of studies have the numbers that the program comes with, word by word: written anew by
// sparseserve claims --built-in --paper NAME --readme FILE. The README counts the same.
func TestTablesOfStudies(t *testing.T) {
	const ours = "docs/studies/sparseserve.md"
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for paper, at := range map[string][2]string{"sparseserve": {ours, "claims"},
		"psa":        {"docs/studies/psa.md", "claims psa"},
		"minference": {"docs/studies/minference.md", "claims minference"}} {
		claims, err := papers.Claims(paper)
		if err != nil {
			t.Fatal(err)
		}
		outcomes, err := papers.Kept(claims, "")
		if err != nil {
			t.Fatal(err)
		}
		papers.SortByClass(outcomes)
		if block := blockOf(t, at[0], at[1]); block != page(t, answers.Claims(outcomes)) {
			t.Errorf("%s is not what claims --built-in --paper %s --readme writes", at[0], paper)
		}
		row := regexp.MustCompile(`\| \[[A-Za-z]+\]\(docs/studies/` + paper +
			`\.md\) \| ([^|]+) \| ([^|]+) \|`).FindStringSubmatch(string(readme))
		var passed, undecided, all [2]int // of independent evidence, and of the other classes
		for _, v := range outcomes {
			i := 0
			if v.Class != papers.Independent {
				i = 1
			}
			all[i]++
			switch v.Verdict {
			case papers.Pass:
				passed[i]++
			case papers.Undecided:
				undecided[i]++
			}
		}
		want := []string{fmt.Sprintf("%d of %d pass, %d undecided", passed[0], all[0], undecided[0]),
			fmt.Sprintf("%d of %d pass", passed[1], all[1])}
		if row == nil || !slices.Equal(row[1:], want) {
			t.Errorf("README.md counts %q for %s, want %q", row, paper, want)
		}
	}
	table := blockOf(t, ours, "sensitivity")
	for _, p := range papers.TunedParameters() {
		if !strings.Contains(table, "\n| "+p.Name+" | ") {
			t.Errorf("%s has no row of %s", ours, p.Name)
		}
	}
}

// The page says what the null model passes.
func TestNullOnThePage(t *testing.T) {
	block := blockOf(t, "docs/studies/sparseserve.md", "null")
	status, out, errs := invoke(t, nil, "claims", "--null", "--json")
	var outcomes []papers.Outcome
	if err := json.Unmarshal([]byte(out), &outcomes); status != 0 || err != nil {
		t.Fatalf("status %d, stderr %q, %v", status, errs, err)
	}
	if want := page(t, answers.NullClaims(outcomes)); block != want {
		t.Errorf("docs/studies/sparseserve.md is not what claims --null --readme writes:\n%s", want)
	}
}

// The page says what models with exchanged output lengths pass: the numbers are kept by sparseserve
// claims --swapped --keep, and the block is written by --readme.
func TestSwappedOnThePage(t *testing.T) {
	claims, err := papers.Claims("")
	if err != nil {
		t.Fatal(err)
	}
	claims = new(claimsCmd).shorterClaims(claims)
	var models [][]papers.Outcome
	for _, changed := range []string{papers.Shorter, papers.Exchanged} {
		outcomes, err := papers.Kept(claims, changed)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, outcomes)
	}
	ratio := ""
	for i := range models[0] {
		ours, exchanged := &models[0][i], &models[1][i]
		if !ours.Measured() || !exchanged.Measured() {
			t.Fatalf("%s is not kept", ours.ID)
		}
		if ours.Paper != "sparseserve" && *ours.Ours != *exchanged.Ours {
			t.Errorf("%s is %g, %g with exchanged lengths", ours.ID, *ours.Ours, *exchanged.Ours)
		}
		if ours.ID == "ss-fig10-ttft" {
			ratio = fmt.Sprintf("TTFT ratio is %.3g with exchanged ones", *exchanged.Ours)
		}
	}
	for i := range models {
		models[i] = slices.DeleteFunc(models[i],
			func(v papers.Outcome) bool { return v.Paper != "sparseserve" })
	}
	const file = "docs/studies/sparseserve.md"
	block := blockOf(t, file, "swapped")
	if want := page(t, answers.SwappedClaims(models[0], models[1])); block != want {
		t.Errorf("%s is not what claims --swapped --paper sparseserve --readme writes:\n%s", file, want)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), ratio) {
		t.Errorf("%s does not say that the %s (%v)", file, ratio, err)
	}
}

// The page has what the kept settings gave.
func TestSearchOnThePage(t *testing.T) {
	const file = "docs/studies/sparseserve.md"
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "page.md")
	writeFile(t, copied, string(text))
	_, out, errs := invoke(t, nil, "claims", "--search", "--paper", "sparseserve", "--readme", copied)
	again, err := os.ReadFile(copied)
	if err != nil || !bytes.Equal(text, again) || errs != "" || !strings.Contains(out, "ss-fig1-up") {
		t.Errorf("%s is not what claims --search --paper sparseserve --readme writes: %s, %v", file, errs,
			err)
	}
}

// The README stays short enough to be read.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines > 180 {
		t.Errorf("README.md has %d lines, more than 180: what is longer belongs in docs/", lines)
	}
}
