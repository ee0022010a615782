package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
)

// A refactoring keeps every number of every JSON. SPARSESERVE_BEFORE names a program that was built
// before it: each example's command, with fewer requests and --json, prints the same data by both.
// Keys may be added.
func TestNumbersStay(t *testing.T) {
	before := os.Getenv("SPARSESERVE_BEFORE")
	if before == "" {
		t.Skip("SPARSESERVE_BEFORE is not set")
	}
	t.Chdir(filepath.Join("..", ".."))
	files, err := filepath.Glob("examples/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "#   sparseserve ")
			args := append(strings.Fields(command), "--json")
			if !ok || args[0] == "report" {
				continue
			}
			t.Run(command, func(t *testing.T) {
				if args[0] != "trace" && args[0] != "list" {
					args = append(args, "--set", "workload.requests=10")
				}
				data := func(out []byte) (v any) {
					if err := json.Unmarshal(out, &v); err != nil {
						t.Fatalf("%v:\n%s", err, out)
					}
					return v
				}
				var old bytes.Buffer
				program := exec.CommandContext(t.Context(), before, inFolder(t, args)...)
				program.Stdout = &old
				if err := program.Run(); err != nil {
					t.Fatal(err)
				}
				_, out, _ := runHere(t.Context(), run.NewSimulator().Run, inFolder(t, args)...)
				if path := lost(data(old.Bytes()), data([]byte(out)), ""); path != "" {
					t.Errorf("another value of %s", path)
				}
			})
		}
	}
}

// inFolder adds a result folder to the arguments of a command that has one.
func inFolder(t *testing.T, args []string) []string {
	if args[0] == "list" || args[0] == "trace" {
		return args
	}
	return append(args[:len(args):len(args)], "--out", filepath.Join(t.TempDir(), "out"))
}

// lost returns the path of the first value of a JSON that another JSON lacks or changes, or "".
func lost(old, now any, path string) string {
	was, isObject := old.(map[string]any)
	is, _ := now.(map[string]any)
	list, isList := old.([]any)
	others, _ := now.([]any)
	switch {
	case isList && len(list) != len(others), !isList && !isObject && !reflect.DeepEqual(old, now):
		return path + " (all)"
	case isList:
		for i := range list {
			if p := lost(list[i], others[i], path+"[]"); p != "" {
				return p
			}
		}
	}
	for key, value := range was {
		if p := lost(value, is[key], path+"."+key); p != "" {
			return p
		}
	}
	return ""
}

func TestLost(t *testing.T) {
	read := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	old := `[{"a": 1, "b": [1, 2], "c": {"d": null}}]`
	for text, same := range map[string]bool{
		old: true, `[{"a": 1, "b": [1, 2], "c": {"d": null}, "e": 3}]`: true, `[]`: false,
		`[{"a": 2, "b": [1, 2], "c": {"d": null}}]`: false, `[{"a": 1, "b": [1], "c": {}}]`: false,
		`[{"a": 1, "b": [1, 3], "c": {}}]`: false, `[{"b": [1, 2], "c": {}}]`: false,
	} {
		if (lost(read(old), read(text), "") == "") != same {
			t.Errorf("%s: same is not %t", text, same)
		}
	}
}
