package cli

import (
	"encoding/csv"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/validate"
	"github.com/sparseserve/sparseserve/internal/answers"
	"github.com/sparseserve/sparseserve/internal/doc"
	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/show"
)

// A name within a cell makes no line and no column, in any table.
func TestNamesInTables(t *testing.T) {
	var out strings.Builder
	w := doc.Table{Columns: doc.Columns("name", "n")}
	w.Add("a\nb\r\n\tc\x1b", 1)
	show.Table(&plainWriter{w: &out}, &w, 0)
	if got := out.String(); strings.Count(got, "\n") != 5 || !strings.Contains(got,
		`│ a\nb\r\n\tc\u001b │ 1 │`) {
		t.Errorf("got\n%s", got)
	}
}

// Cells of Markdown have no columns, lines or tags of their own.
func TestNamesInMarkdown(t *testing.T) {
	if got, want := show.MarkdownRow("", "a|b", "c\nd", `e\|f`, "<b>", "1 < 2", "\t\x1b"),
		`| | a\|b | c\\nd | e\\\|f | &lt;b> | 1 < 2 | \\t\\u001b |`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for want, d := range map[string]*doc.Doc{
		`| a\|b\\n\| forged \| c | `: answers.Validation(&validate.Report{
			Runs: []validate.ValidatedRun{{Run: "a|b\n| forged | c"}}}),
		`| a\|b\\nc |`: answers.Ablation(&validate.Ablation{
			Rows: []validate.AblationRow{{Concept: "a|b\nc"}}}),
	} {
		var out strings.Builder
		if err := show.Markdown(&out, d); err != nil || !strings.Contains(out.String(), "\n"+want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// No cell of a CSV that a command writes is a formula, whatever names it was given, and no line of
// what it prints is one of their own.
func TestHostileNames(t *testing.T) {
	t.Chdir(t.TempDir())
	const forged = "=1+1|x\nforged\tline\r"
	config := `{"_name_or_path": ` + strconv.Quote(forged) + `, "model_type": "llama",
"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
"max_position_embeddings": 131072, "torch_dtype": "bfloat16"}`
	const trace = "arrived_s,prompt_tokens,output_tokens,set\n0,40,2,=1+cmd\n" +
		"1,40,2,\"\"\"a\\nforged\"\"\"\n"
	if err := errors.Join(os.Mkdir("=M", 0o755), os.Mkdir(forged, 0o755)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "=M/config.json", config)
	writeFile(t, forged+"/config.json", config)
	writeFile(t, "=t.csv", trace)
	writeFile(t, forged+"/t.csv", trace)
	writeFile(t, forged+"/c.toml", "model = "+strconv.Quote(forged)+"\n[workload]\ntrace = "+
		strconv.Quote(forged+"/t.csv")+"\nrequests = 2\nrate = 1\n[system]\npreset = \"vllm\"\n")
	small := func(command ...string) []string {
		return append(command, "--set", "workload.requests=2", "--set", "workload.rate=1", "--set",
			"system.preset=vllm")
	}
	for _, args := range [][]string{
		small("simulate", "--set", "model==M", "--set", "workload.trace==t.csv", "--out", "R"),
		{"simulate", forged + "/c.toml", "--out", forged + "/R"},
		{"simulate", forged + "/c.toml", "--out", forged + "/S"},
		{"goodput", forged + "/c.toml", "--set", "goodput.coarse=true", "--out", forged + "/P"},
		{"whatif", forged + "/c.toml", "--vary", "link=1..2", "--steps", "2", "--out", forged + "/W"},
		{"trace", "convert", "=t.csv", "--out", "o.csv"},
		{"trace", "describe", forged + "/t.csv", "--out", forged + "/D"},
		{"trace", "describe", "o.csv"},
		{"list", "models", forged}, {"list", "models", "=M"},
		{"report", forged + "/R", "--format", "png"}, {"report", forged + "/R"}, {"compare", "R",
			forged + "/R"},
	} {
		status, out, errs := runHere(t.Context(), run.NewSimulator().Run, args...)
		for line := range strings.Lines(out + errs) {
			if strings.HasPrefix(strings.TrimSpace(line), "forged") || strings.Contains(line, "\r") {
				t.Errorf("%q: a line of a name's own: %q", args, line)
			}
		}
		if status != exitOK {
			t.Errorf("%q: %s", args, errs)
		}
	}
	checked := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || d.IsDir() || !strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".csv") ||
			name == "=t.csv" || name == "t.csv" {
			return err
		}
		text, err := files.ReadResult(path)
		if err != nil {
			return err
		}
		rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
		if err != nil {
			return err
		}
		for _, cell := range slices.Concat(rows...) {
			_, number := strconv.ParseFloat(cell, 64)
			if cell != "" && number != nil && strings.ContainsAny(cell[:1], "=+-@\t\r\n") {
				t.Errorf("%q: cell %q", path, cell)
			}
		}
		checked++
		return nil
	})
	if err != nil || checked < 8 {
		t.Errorf("%d files, %v", checked, err)
	}
}
