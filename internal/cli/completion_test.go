package cli

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Every shell has a script, and the program answers what such a script asks.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		status, script, errs := invoke(t, nil, "completion", shell)
		if status != exitOK || errs != "" || !strings.Contains(script, completeWords) {
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
		{[]string{"sim"}, []string{"simulate"}, []string{"goodput"}},
		{[]string{""}, []string{"simulate", "list"}, []string{"task"}},
		{[]string{"list", ""}, []string{"gpus", "keys"}, []string{"h200"}},
		{[]string{"plan", "--ta"}, []string{"--tasks"}, []string{"--out"}},
		{[]string{"simulate", "--"}, []string{"--set", "--help"}, []string{"--split-every"}},
		{[]string{"report", "--format", ""}, []string{"html", "png"}, []string{"--out"}},
		{[]string{"completion", ""}, []string{"zsh"}, nil},
		{[]string{"simulate", "--set", "workload.r"}, []string{"workload.rate="}, []string{"model="}},
		{[]string{"simulate", "--set", "system.preset=vllm-"}, []string{"system.preset=vllm-so"},
			[]string{"system.preset=sparseserve"}},
		{[]string{"simulate", "--set", "offload.on="}, []string{"offload.on=true"}, nil},
		{[]string{"simulate", "fig1"}, []string{"fig10a"}, []string{"default"}},
		{[]string{"list", "prefills", ""}, []string{"minference"}, []string{"lwm-7b"}},
		{[]string{"paper", ""}, []string{"run", "claims", "figures"}, []string{"simulate"}},
		{[]string{"paper", "claims", "ss-fig16"}, []string{"ss-fig16a"}, []string{"psa"}},
		{[]string{"list", "models", "lwm"}, []string{"lwm-7b"}, []string{"llama3-8b"}},
		{[]string{"plan", "--gpus", "h"}, []string{"h200"}, []string{"a100-40gb"}},
		{[]string{"whatif", "--vary", "li"}, []string{"link="}, []string{"budget="}},
		{[]string{"whatif", "--threshold", ""}, []string{"offload-link"}, nil},
		{[]string{"whatif", "--metric", "tt"}, []string{"ttft_p99"}, []string{"batch"}},
	} {
		status, out, _ := invoke(t, nil, append([]string{completeWords}, c.words...)...)
		var offered []string
		for line := range strings.Lines(out) {
			offered = append(offered, strings.TrimSpace(line))
		}
		for i, word := range append(slices.Clone(c.has), c.lacks...) {
			if slices.Contains(offered, word) != (i < len(c.has)) || status != exitOK {
				t.Errorf("%q: status %d, offers %q", c.words, status, offered)
			}
		}
	}
}
