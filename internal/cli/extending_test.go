package cli

import (
	"bytes"
	"encoding/json"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipes is docs/extending.md, applied: files as the recipes leave them.
type recipes struct {
	sources map[string]string // by path in the repository, new and changed
	files   map[string]string // of a user's own folder
	tries   map[string][]string
}

const recipesPage = "docs/extending.md"

var (
	fence    = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	insertAt = regexp.MustCompile("^in (\\S+), after `(.+)`$")
	// Recipes import the program by its usual name, whatever its module is called.
	ownImport = regexp.MustCompile(`"(?:[\w.]+/)*sparseserve/`)
)

// readRecipes applies the page to the repository's sources, which stay as they are.
func readRecipes(t *testing.T, module string) *recipes {
	t.Helper()
	page, err := os.ReadFile(recipesPage)
	if err != nil {
		t.Fatal(err)
	}
	r := &recipes{map[string]string{}, map[string]string{}, map[string][]string{}}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		for _, block := range fence.FindAllStringSubmatch(section, -1) {
			if block[1] == "sh" {
				r.tries[title] = append(r.tries[title], strings.Split(strings.TrimSpace(block[2]), "\n")...)
				continue
			}
			head, body, _ := strings.Cut(block[2], "\n")
			_, head, _ = strings.Cut(head, " ") // less the comment's sign
			body = ownImport.ReplaceAllString(body, `"`+module+"/")
			r.apply(t, title, head, body)
		}
		if len(r.tries[title]) == 0 {
			t.Errorf("%s: no command tries it", title)
		}
	}
	return r
}

// apply adds the file that a block is, or inserts the block into one.
func (r *recipes) apply(t *testing.T, title, head, body string) {
	t.Helper()
	at := insertAt.FindStringSubmatch(head)
	switch {
	case at != nil:
		text, ok := r.sources[at[1]]
		if !ok {
			on, err := os.ReadFile(at[1])
			if err != nil {
				t.Fatalf("%s: %v", title, err)
			}
			text = string(on)
		}
		before, after, _ := strings.Cut(text, at[2])
		line, rest, ok := strings.Cut(after, "\n")
		if !ok || strings.Contains(rest, at[2]) {
			t.Fatalf("%s: %d lines of %s have %q, want 1", title, strings.Count(text, at[2]), at[1], at[2])
		}
		r.sources[at[1]] = before + at[2] + line + "\n" + body + rest
	case strings.Contains(head, "/"):
		if _, err := os.Stat(head); err == nil {
			t.Fatalf("%s: %s exists", title, head)
		}
		r.sources[head] = body
	default:
		r.files[head] = body
	}
}

// overlay writes what go's -overlay flag reads, and returns its path.
func (r *recipes) overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for name, text := range r.sources {
		if filepath.Ext(name) == ".go" {
			if tidy, err := format.Source([]byte(text)); err != nil || string(tidy) != text {
				t.Errorf("%s: not as gofmt has it (%v)", name, err)
			}
		}
		at, err := filepath.Abs(name)
		if err != nil {
			t.Fatal(err)
		}
		replace[at] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		writeFile(t, replace[at], text)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	writeFile(t, path, string(text))
	return path
}

// Every recipe of docs/extending.md works: its code fits today's sources, one program is built
// with all of them, and each recipe's commands run.
func TestRecipes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	t.Chdir(filepath.Join("..", ".."))
	module := strings.TrimSpace(output(t, ".", "go", "list", "-m"))
	r := readRecipes(t, module)
	overlay := r.overlay(t)
	program := filepath.Join(t.TempDir(), "sparseserve")
	output(t, ".", "go", "build", "-overlay", overlay, "-o", program, ".")
	dir := t.TempDir()
	for name, text := range r.files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	for title, commands := range r.tries {
		ran := 0
		for _, line := range commands {
			command, note, _ := strings.Cut(line, " #")
			words := strings.Fields(command)
			got := ""
			switch words[0] {
			case "sparseserve":
				got = output(t, dir, program, words[1:]...)
			case "go":
				got = output(t, ".", "go", append([]string{words[1], "-overlay", overlay}, words[2:]...)...)
				if strings.Contains(got, "no tests to run") {
					t.Errorf("%s: %s: %s", title, command, got)
				}
			default:
				continue // needs a GPU
			}
			ran++
			if _, want, ok := strings.Cut(note, "shows "); ok && !strings.Contains(got, want) {
				t.Errorf("%s: %s does not show %q:\n%s", title, command, want, got)
			}
		}
		if ran == 0 {
			t.Errorf("%s: none of its commands ran", title)
		}
	}
	if len(r.tries) < 9 {
		t.Errorf("%d recipes, want 9", len(r.tries))
	}
}

// output runs a command in a folder and returns what it prints.
func output(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	if err := cmd.Run(); err != nil {
		t.Errorf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &errs)
	}
	return out.String()
}
