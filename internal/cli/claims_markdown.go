package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparseserve/sparseserve/experiments/papers"
)

// claimsMarkdown is the table of the README: measured claims, then why some
// fail.
func claimsMarkdown(outcomes []papers.Outcome) string {
	var b strings.Builder
	b.WriteString("| claim | where | paper | ours | 95 % interval | deviation | " +
		"|\n|-|-|-:|-:|-:|-:|-|\n")
	for i := range outcomes {
		v := &outcomes[i]
		if !v.Measured() {
			continue
		}
		name := v.Text
		if i > 0 && outcomes[i-1].Text == v.Text {
			name = fmt.Sprintf("the same, number %d", v.Index+1)
		}
		where := v.Where
		if v.Paper != "sparseserve" {
			where = v.Paper + ", " + where
		}
		outcome := outcome(v)
		if !v.Pass {
			outcome = "**fail**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", name, where,
			strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(claimed(v)), ours(v), interval(v),
			deviation(v), outcome)
	}
	b.WriteString("\n" + tally(outcomes) + "\n")
	if lines := failures(outcomes); len(lines) > 0 {
		b.WriteString("\nWhere they fail:\n\n")
		for _, line := range lines {
			id, note, _ := strings.Cut(line, ": ")
			fmt.Fprintf(&b, "- `%s`: %s\n", id, note)
		}
	}
	return b.String()
}

// cutBlock returns what stands up to the line <!-- name --> of a file, that line
// included, and from the line <!-- /name --> on.
func cutBlock(path, name string) (before, after string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	start, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, ok := strings.Cut(string(text), start)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", fmt.Errorf("%s: no lines %q and %q to write between", path,
			strings.TrimSpace(start), end)
	}
	return before + start, end + after, nil
}

// writeBlock replaces what stands between the lines <!-- name --> and
// <!-- /name --> of a file.
func writeBlock(path, name, block string) error {
	before, after, err := cutBlock(path, name)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, []byte(before+block+after), info.Mode().Perm(),
		renameio.WithTempDir(filepath.Dir(path)))
}
