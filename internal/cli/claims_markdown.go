package cli

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/papers"
	"github.com/sparseserve/sparseserve/internal/files"
)

// claimsMarkdown is what a study says of its claims: a table a class, then why some do not pass.
func claimsMarkdown(outcomes []papers.Outcome) string {
	var b strings.Builder
	lines := tallies(outcomes)
	for _, class := range papers.Classes() {
		own := ofClass(outcomes, class)
		if len(own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "**%s**\n\n| claim | where | paper | ours | 95 %% interval | deviation | "+
			"|\n|-|-|-:|-:|-:|-:|-|\n", upperFirst(lines[0]))
		lines = lines[1:]
		for i := range own {
			if own[i].Measured() {
				b.WriteString(claimRow(own, i))
			}
		}
		b.WriteString("\n")
	}
	b.WriteString(aboutVerdicts + "\n")
	if lines := failures(outcomes); len(lines) > 0 {
		b.WriteString("\nWhere they do not pass:\n\n")
		for _, line := range lines {
			id, note, _ := strings.Cut(line, ": ")
			fmt.Fprintf(&b, "- `%s`: %s\n", id, note)
		}
	}
	return b.String()
}

// claimRow is the row of number i of a class.
func claimRow(own []papers.Outcome, i int) string {
	v := &own[i]
	name, where, verdict := v.Text, v.Where, string(v.Verdict)
	if i > 0 && own[i-1].Text == v.Text {
		name = fmt.Sprintf("the same, number %d", v.Index+1)
	}
	if v.Paper != "sparseserve" {
		where = v.Paper + ", " + where
	}
	if v.Verdict == papers.Fail {
		verdict = "**fail**"
	}
	return markdownRow(name, where,
		strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(claimed(v)), ours(v), interval(v),
		deviation(v), verdict)
}

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// cutBlock returns what stands up to the line <!-- name --> of a file, that line
// included, and from the line <!-- /name --> on.
func cutBlock(path, name string) (before, after string, err error) {
	text, err := files.ReadResult(path)
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
	return files.Write(path, []byte(before+block+after))
}
