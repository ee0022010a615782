package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// every is a command with each kind of field.
type every struct {
	File  string   `arg:"" name:"FILE"`
	More  []string `arg:"" optional:"" name:"MORE"`
	Pair  []string `sep:"none"`
	Only  []string
	Form  []string `enum:"png,svg" default:"png"`
	Count int      `default:"7"`
	Seed  uint64
	Skip  float64
	Quick bool
	Mode  string `enum:"gpu,reference" alone:"gpu"`
	inner
	was []string
}

type inner struct {
	TaskCount int64 `required:"" placeholder:"N" env:"GRAMMAR_FIRST,GRAMMAR_SECOND"`
}

func (e *every) Run(*App) error {
	e.was = append(e.was, "run")
	return nil
}

// Words become what their fields say, or one error that names the flag and what to do.
func TestGrammar(t *testing.T) {
	t.Setenv("GRAMMAR_SECOND", "3")
	for line, check := range map[string]func(e *every) bool{
		"f": func(e *every) bool {
			return e.File == "f" && e.More == nil && e.Count == 7 && equal(e.Form, "png")
		},
		"f a --quick b": func(e *every) bool { return e.Quick && equal(e.More, "a", "b") },
		"f -- --quick":  func(e *every) bool { return !e.Quick && equal(e.More, "--quick") },
		"f --pair k=[1,2] --pair=a": func(e *every) bool {
			return equal(e.Pair, "k=[1,2]", "a")
		},
		"f --only a,b --only c": func(e *every) bool { return equal(e.Only, "a", "b", "c") },
		"f --form svg":          func(e *every) bool { return equal(e.Form, "svg") },
		"f --count -4 --skip=-0.5": func(e *every) bool {
			return e.Count == -4 && e.Skip == -0.5
		},
		"--mode f":              func(e *every) bool { return e.Mode == "gpu" && e.File == "f" },
		"f --mode=reference":    func(e *every) bool { return e.Mode == "reference" },
		"f --quick=false":       func(e *every) bool { return !e.Quick },
		"f --seed 9":            func(e *every) bool { return e.Seed == 9 && e.TaskCount == 3 },
		"f --task-count 5":      func(e *every) bool { return e.TaskCount == 5 },
		"f --count 1 --count=2": func(e *every) bool { return e.Count == 2 },
	} {
		e := &every{}
		if err := executed(e, line); err != nil || !check(e) || len(e.was) != 1 {
			t.Errorf("%s: %+v, %v", line, *e, err)
		}
	}
	for line, want := range map[string]string{
		"":                 "expected <FILE>; see every --help",
		"f --form gif":     "--form gif: must be one of png, svg; see every --help",
		"f --form png,gif": "--form png,gif: must be one of png, svg; see every --help",
		"f --mode=gpus": "--mode gpus: must be one of gpu, reference (did you mean \"gpu\"?); " +
			"see every --help",
		"f --count 1.5":   "--count 1.5: must be a whole number; see every --help",
		"f --seed -1":     "--seed -1: must be a whole number, 0 or more; see every --help",
		"f --skip much":   "--skip much: must be a number; see every --help",
		"f --quick=maybe": "--quick maybe: must be true or false; see every --help",
		"f --tsk-count 1": `--tsk-count: no such flag (did you mean "--task-count"?); see every --help`,
		"f --count":       "flag needs an argument: --count; see every --help",
	} {
		e := &every{}
		if err := executed(e, line); err == nil || err.Error() != want || len(e.was) > 0 {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	t.Setenv("GRAMMAR_SECOND", "x")
	if err := executed(&every{}, "f"); err == nil ||
		!strings.HasPrefix(err.Error(), "GRAMMAR_SECOND=x: must be") {
		t.Error(err)
	}
}

func equal(got []string, want ...string) bool { return slices.Equal(got, want) }

func executed(e *every, line string) error {
	c := (&App{}).command("every", "", e)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetFlagErrorFunc(flagError)
	c.SetArgs(strings.Fields(line))
	return c.Execute()
}

// Every shell has a script, and the program answers what such a script asks.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		status, script, errs := invoke(t, nil, "completion", shell)
		if status != exitOK || errs != "" || !strings.Contains(script, "__complete") {
			t.Errorf("%s: status %d, stderr %q, %d bytes", shell, status, errs, len(script))
		}
		if path, err := exec.LookPath(shell); err == nil && shell == "bash" {
			check := exec.Command(path, "-n")
			check.Stdin = strings.NewReader(script)
			if out, err := check.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	}
	for _, c := range []struct {
		words, has, lacks []string
	}{
		{[]string{"sw"}, []string{"sweep"}, []string{"simulate"}},
		{[]string{""}, []string{"simulate", "list", "help"}, []string{"point", "plan-task"}},
		{[]string{"list", ""}, []string{"gpus", "keys"}, []string{"sweep"}},
		{[]string{"sweep", "--e"}, []string{"--engine"}, []string{"--out"}},
		{[]string{"simulate", "--"}, []string{"--set", "--help"}, []string{"--cpuprofile"}},
		{[]string{"sweep", "--engine", ""}, []string{"local", "slurm", "kubernetes"}, []string{"--out"}},
		{[]string{"completion", ""}, []string{"zsh"}, nil},
		{[]string{"simulate", "--set", "workload.r"}, []string{"workload.rate="}, []string{"model="}},
		{[]string{"simulate", "--set", "system.preset=vllm-"}, []string{"system.preset=vllm-so"},
			[]string{"system.preset=sparseserve"}},
		{[]string{"simulate", "--set", "system.offload="}, []string{"system.offload=true"}, nil},
		{[]string{"simulate", "fig1"}, []string{"fig10a"}, []string{"default"}},
		{[]string{"list", "models", "lwm"}, []string{"lwm-7b"}, []string{"llama3-8b"}},
		{[]string{"plan", "--gpus", "h"}, []string{"h200"}, []string{"a100-40gb"}},
		{[]string{"whatif", "--vary", "li"}, []string{"link="}, []string{"budget="}},
		{[]string{"whatif", "--threshold", ""}, []string{"offload-link"}, nil},
		{[]string{"whatif", "--metric", "tt"}, []string{"ttft_p99"}, []string{"batch"}},
	} {
		status, out, _ := invoke(t, nil, append([]string{"__complete"}, c.words...)...)
		var offered []string
		for line := range strings.Lines(out) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			offered = append(offered, word)
		}
		for i, word := range append(slices.Clone(c.has), c.lacks...) {
			if slices.Contains(offered, word) != (i < len(c.has)) || status != exitOK {
				t.Errorf("%q: status %d, offers %q", c.words, status, offered)
			}
		}
	}
}
