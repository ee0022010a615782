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
	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/show"
)

// page is the Markdown of an answer on a page: all but its title and folded tables.
func page(t *testing.T, d *doc.Doc) string {
	t.Helper()
	shown := doc.Doc{Answers: d.Answers, Tables: slices.DeleteFunc(slices.Clone(d.Tables),
		func(t doc.Table) bool { return t.Folded })}
	var text bytes.Buffer
	if err := show.Markdown(&text, &shown); err != nil {
		t.Fatal(err)
	}
	return strings.TrimPrefix(text.String(), "\n")
}

// checkBlock compares a generated block of a page with an answer, and with -update writes it.
func checkBlock(t *testing.T, file, name string, d *doc.Doc) {
	t.Helper()
	testkit.Block(t, filepath.Join("..", "..", file), name, page(t, d))
}

// The pages of studies have the numbers that the program comes with. The README counts the same.
func TestTablesOnThePages(t *testing.T) {
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
		checkBlock(t, at[0], at[1], answers.Claims(outcomes))
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
	table := testkit.BlockOf(t, filepath.Join("..", "..", ours), "sensitivity")
	for _, p := range papers.TunedParameters() {
		if !strings.Contains(table, "\n| "+p.Name+" | ") {
			t.Errorf("%s has no row of %s", ours, p.Name)
		}
	}
}

// The page has the counts of the null model.
func TestNullOnThePage(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	status, out, errs := invoke(t, nil, "paper", "claims", "--numbers", "null", "--json")
	t.Chdir(wd)
	var outcomes []papers.Outcome
	if err := json.Unmarshal([]byte(out), &outcomes); status != 0 || err != nil {
		t.Fatalf("status %d, stderr %q, %v", status, errs, err)
	}
	checkBlock(t, "docs/studies/sparseserve.md", "null", answers.NullClaims(outcomes))
}

// The page has the counts of models with exchanged output lengths, which sparseserve paper claims
// --numbers swapped --keep stores.
func TestSwappedOnThePage(t *testing.T) {
	claims, err := papers.Claims()
	if err != nil {
		t.Fatal(err)
	}
	claims = slices.DeleteFunc(claims, papers.Claim.Apart)
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
	checkBlock(t, file, "swapped", answers.SwappedClaims(models[0], models[1]))
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), ratio) {
		t.Errorf("%s does not say that the %s (%v)", file, ratio, err)
	}
}

// The table of the kept settings is what paper claims --numbers search prints.
func TestSearchedClaims(t *testing.T) {
	status, out, errs := invoke(t, nil, "paper", "claims", "sparseserve", "--numbers", "search",
		"--format", "md")
	if status != 0 {
		t.Fatalf("status %d, stderr %q", status, errs)
	}
	_, table, _ := strings.Cut(out, "\n\n") // below the title
	testkit.Golden(t, "claims-search.md", table)
}

var (
	generatedBlock = regexp.MustCompile(`(?s)<!-- [a-z]+(?: [a-z]+)? -->.*?<!-- /`)
	word           = regexp.MustCompile(`\S*\w\S*`)
)

// The README and the pages that are written by hand stay short enough to be read.
func TestDocumentsAreShort(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	total := 0
	for _, file := range documents(t)[2:] {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if base := filepath.Base(file); base != "configuration.md" && base != "columns.md" {
			prose := fence.ReplaceAllString(generatedBlock.ReplaceAllString(string(text), ""), "")
			total += len(word.FindAllString(prose, -1))
		}
	}
	if total > 14_400 || total < 5_000 {
		t.Errorf("docs/ has %d words written by hand, want 5,000 to 14,400", total)
	}

	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, words := strings.Count(string(text), "\n"), len(strings.Fields(string(text)))
	if lines > 120 || words > 850 {
		t.Errorf("README.md has %d lines and %d words, more than 120 and 850: what is longer belongs in "+
			"docs/", lines, words)
	}
}
