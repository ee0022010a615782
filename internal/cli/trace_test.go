package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/testkit"
	"github.com/sparseserve/sparseserve/traces"
)

// trace describe prints what prefix caches find, and draws it where it is asked to.
func TestTraceDescribesReuse(t *testing.T) {
	file, err := filepath.Abs("../../traces/testdata/mooncake.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	status, out, errs := invoke(t, nil, "trace", "describe", file, "--out", dir)
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %q", status, errs)
	}
	out = strings.ReplaceAll(strings.ReplaceAll(out, dir, "DIR"), filepath.Dir(file), "TESTDATA")
	testkit.Golden(t, "trace-describe.txt", out)
	if _, err := os.Stat(filepath.Join(dir, "prefix.png")); err != nil {
		t.Error(err)
	}
	status, out, _ = invoke(t, nil, "trace", "describe", file, "--json", "--model", "lwm-7b")
	var d traces.Description
	if err := json.Unmarshal([]byte(out), &d); err != nil || status != 0 ||
		d.Prefix.Model != "lwm-7b" || d.Prefix.BlockTokens != 16 {
		t.Errorf("%+v, %v", d.Prefix, err)
	}
	for _, args := range [][]string{{"--block", "512"}, {"--model", "lmw-7b"}} {
		status, out, errs := invoke(t, nil, append([]string{"trace", "describe", file}, args...)...)
		if status == 0 || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: status %d, %q, %q", args, status, out, errs)
		}
	}
}

// Texts are counted with the tokenizer of the model whose KV it is.
func TestDescribeCountsWithTheModelsTokenizer(t *testing.T) {
	file, err := filepath.Abs("../../traces/testdata/sharegpt.json")
	if err != nil {
		t.Fatal(err)
	}
	for model, tokenizer := range map[string]string{"lwm-7b": "llama2", "llama3-8b": "llama3"} {
		workload := filepath.Join(t.TempDir(), "w.toml")
		writeFile(t, workload,
			fmt.Sprintf("model = %q\n[workload]\ntrace = %q\nrate = 1\n", model, file))
		_, want, _ := invoke(t, nil, "trace", "describe", workload, "--json")
		_, got, _ := invoke(t, nil, "trace", "describe", file, "--json", "--model", model)
		var as, of traces.Description
		err := errors.Join(json.Unmarshal([]byte(want), &as), json.Unmarshal([]byte(got), &of))
		if err != nil {
			t.Fatal(err)
		}
		if of.Prompt.Mean != as.Prompt.Mean || of.Prompt.Mean == 0 ||
			!strings.HasPrefix(of.Warnings[0].Text, tokenizer+" prompt tokens") {
			t.Errorf("%s: prompts of %g tokens, and %g of a configuration; %q", model, of.Prompt.Mean,
				as.Prompt.Mean, of.Warnings)
		}
	}
}

// A configuration is described, not converted.
func TestConvertTakesNoConfiguration(t *testing.T) {
	for _, out := range []string{"-", filepath.Join(t.TempDir(), "out.csv")} {
		status, printed, errs := invoke(t, nil, "trace", "convert", "mix.toml", "--out", out)
		if status != exitFailed || printed != "" ||
			!strings.Contains(errs, "mix.toml: a configuration, and convert takes a trace") {
			t.Errorf("status %d, %q, %q", status, printed, errs)
		}
	}
}

// The name of a generated workload is no file; a configuration with that name can be described.
func TestDescribeOfGeneratedWorkload(t *testing.T) {
	for _, name := range []string{traces.BuiltIn, traces.Synthetic, traces.Sessions} {
		status, out, errs := invoke(t, nil, "trace", "describe", name)
		if status != exitFailed || out != "" || !strings.Contains(errs, name+": no such file or folder, "+
			"but a generated workload") || strings.Contains(errs, "did you mean") {
			t.Errorf("status %d, %q, %q", status, out, errs)
		}
	}
}
