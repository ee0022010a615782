package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// documents are the Markdown files that users read, from the root of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "CONTRIBUTING.md"}
	err := filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatalf("documents: %v (%v)", files, err)
	}
	return files
}

// command is a line of a shell block, or a command quoted in the text.
type command struct {
	file, line string
	quoted     bool
	needs      bool // is said to need what is not everywhere: a GPU, nvcc, a cluster
}

var inline = regexp.MustCompile("(?s)`((?:sparseserve|go test|make) [^`]*)`")

// commandsOf lists the commands of a document.
func commandsOf(t *testing.T, file string) (all []command) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	prose := ""
	for i, part := range strings.Split(string(text), "\n```") {
		if i%2 == 0 {
			prose += part
			continue
		}
		if !strings.HasPrefix(part, "sh\n") {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(part[3:], "\\\n", "")) {
			line, note, _ := strings.Cut(line, " #")
			for one := range strings.SplitSeq(line, "&&") {
				all = append(all, command{file: file, line: strings.TrimSpace(one),
					needs: strings.Contains(note, "needs ")})
			}
		}
	}
	for _, m := range inline.FindAllStringSubmatch(prose, -1) {
		all = append(all, command{file: file, line: strings.Join(strings.Fields(m[1]), " "),
			quoted: true})
	}
	return all
}

// Every command in the documents is valid. Commands of shell blocks run, with a pretended
// simulator. Commands that need a GPU or a cluster, take minutes, or are quoted in the text are
// only parsed; so are, in short tests, all commands outside the README. Targets of make and tests
// exist.
func TestCommandsOfDocuments(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	ran := 0
	for _, file := range documents(t) {
		for _, c := range commandsOf(t, file) {
			words := strings.Fields(strings.ReplaceAll(c.line, "'", ""))
			if len(words) == 0 || file == recipesPage && !c.quoted && words[0] != "make" {
				continue // TestRecipes runs those, of a program that has the recipes
			}
			switch words[0] {
			case "sparseserve":
				ran++
				c.check(t, words[1:])
			case "make":
				checkTargets(t, &c, words[1:])
			case "go":
				if words[1] == "test" {
					checkTests(t, &c, words[2:])
				}
			}
		}
	}
	if ran < 20 {
		t.Errorf("only %d commands of the documents were looked at", ran)
	}
}

// check runs a command, or has its words understood.
func (c *command) check(t *testing.T, args []string) {
	t.Helper()
	dir := t.TempDir()
	runner := run.Runner(pretend)
	switch {
	case c.quoted || c.needs || slices.Contains(args, "refit") ||
		strings.HasPrefix(c.file, "docs/tutorial/") || // TestTutorial runs those
		testing.Short() && (args[0] == "compare" || c.file != "README.md") ||
		slices.Contains([]string{"validate", "paper", "report"}, args[0]):
		args = append(args, "--help")
	case args[0] == "compare":
		runner = run.NewSimulator().Run
		fallthrough
	case slices.Contains([]string{"simulate", "goodput", "plan", "whatif"}, args[0]):
		if i := slices.Index(args, "my.toml"); i > 0 {
			args[i] = filepath.Join(dir, "my.toml")
			writeFile(t, args[i], tomlOf(t, c.file))
		}
		if i := slices.Index(args, "--out"); i > 0 {
			args[i+1] = dir
		} else {
			args = append(args, "--out", dir)
		}
	}
	if status, _, stderr := runHere(t.Context(), runner, args...); status != exitOK {
		t.Errorf("%s: %s: exit status %d\n%s", c.file, c.line, status, stderr)
	}
}

// tomlOf returns a document's first configuration.
func tomlOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n```toml\n")
	inside, _, ok := strings.Cut(rest, "\n```")
	if !ok {
		t.Fatalf("%s has no configuration", file)
	}
	return inside
}

// checkTargets looks make's targets up.
func checkTargets(t *testing.T, c *command, targets []string) {
	t.Helper()
	rules := ""
	for _, file := range []string{"Makefile", "cuda.mk", filepath.Join("calibrate", "calibrate.mk")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		rules += "\n" + string(text)
	}
	for _, target := range targets {
		if !strings.Contains(target, "=") && !strings.Contains(rules, "\n"+target+":") {
			t.Errorf("%s: %s: no target %s", c.file, c.line, target)
		}
	}
}

// checkTests looks up the package and, by its pattern, the tests of a go test command.
func checkTests(t *testing.T, c *command, args []string) {
	t.Helper()
	var folder, pattern string
	for i, arg := range args {
		switch {
		case strings.HasPrefix(arg, "./"):
			folder = strings.TrimSuffix(arg, "/...")
		case (arg == "-run" || arg == "-bench") && i+1 < len(args):
			pattern = args[i+1]
		}
	}
	if folder == "" || pattern == "" {
		return
	}
	wanted, err := regexp.Compile(pattern)
	if err != nil {
		t.Errorf("%s: %s: %v", c.file, c.line, err)
		return
	}
	found := false
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
			found = found || wanted.MatchString(m[1])
		}
		return err
	})
	if err != nil || !found {
		t.Errorf("%s: %s: no such test (%v)", c.file, c.line, err)
	}
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)

// Every file that a document names in backticks, with its folder, is there; out/ is what commands
// of the documents write.
func TestFilesOfDocuments(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	named := regexp.MustCompile("`((?:[\\w.-]+/)+[\\w.-]+\\.[a-z0-9]+)`")
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[1], "out/") {
				continue
			}
			found++
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s: %v", file, m[1], err)
			}
		}
	}
	if found < 50 {
		t.Errorf("only %d files of the documents were looked at", found)
	}
}

// Every page is in the sidebar of the site.
func TestSiteListsEveryPage(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	site, err := os.ReadFile(filepath.Join("site", ".vitepress", "config.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range documents(t)[2:] {
		if page := strings.TrimSuffix(filepath.ToSlash(file), ".md"); !strings.Contains(string(site),
			"'/"+page+"'") {
			t.Errorf("site/.vitepress/config.mjs does not list /%s", page)
		}
	}
}
