package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Good files, of which nested names others.
const (
	tiny   = "model = \"llama3-8b\"\n[workload]\nrequests = 2\n[system]\npreset = \"vllm\"\n"
	nested = `gpu = "card.toml"
[workload]
trace = "%s"
arrivals = "trace"
requests = 2
[system]
preset = "vllm"
`
	goodTrace  = "arrived_s,prompt_tokens,output_tokens,set\n0,900,3,\n1,40,2,a\n"
	goodRecord = "arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s\n0,40,2,0.1,0.2\n1,40,2,0.1,0.2\n"
	goodPrices = `[[price]]
provider = "a"
gpu = "h200"
usd_per_hour = 2.0
offer = "b"
date = 2026-11-09
source = "c"
via = ""
`
	goodModel = `{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2,
"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
"max_position_embeddings": 8192, "torch_dtype": "bfloat16", "x": [[1], {"y": null}]}
`
)

// kinds are formats of data files by the ends of their names: what the file begins with, a row, and
// what ends the file. A row has a place for unread fields.
var kinds = map[string]struct{ begin, row, between, end string }{
	"csv": {"arrived_s,prompt_tokens,output_tokens,set%s\n", "%d,900,3,a%s", "\n", "\n"},
	"azure": {"TIMESTAMP,ContextTokens,GeneratedTokens%s\n", "2023-11-16 18:15:%02d.5,374,4%s",
		"\n", "\n"},
	"moon": {"", `{"timestamp": %d, "input_length": 700, "output_length": 2%s}`, "\n", "\n"},
	"lcc":  {"", `{"dataset": "lcc", "length": 90%d, "answers": ["a"]%s}`, "\n", "\n"},
	"talks": {"[", `{"conversations": [{"from": "human", "value": "a%d"}, {"from": "gpt", "value": ` +
		`"b"}]%s}`, ",\n", "]\n"},
	"record": {"arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s%s\n", "%d,40,2,0.1,0.2%s",
		"\n", "\n"},
}

// unread are names and values of unread fields.
var unread = []string{"x", "=1+1", "\x1b[2J", "\u202e", "sparseserve: forged", "Prompt_Tokens",
	"hash_id", strings.Repeat("long", 2000), strings.Repeat("[", 20000)}

// harmed begins the names of files with a row that is none: commands refuse them or warn.
const harmed = "harmed."

// drawData writes a file of six requests with unread fields, damaged or not behind the first four,
// packed or not, and reads it.
func drawData(t *rapid.T) []string {
	pick := func(what string, from ...string) string {
		return rapid.SampledFrom(from).Draw(t, what)
	}
	name := pick("kind", "csv", "azure", "moon", "lcc", "talks", "record")
	kind := kinds[name]
	begin, field := kind.begin, ""
	if rapid.Bool().Draw(t, "another field") {
		other, value := pick("name", unread...), pick("value", unread...)
		if field = fmt.Sprintf(", %q: %q", other, value); strings.HasPrefix(value, "[[") {
			field = fmt.Sprintf(", %q: %s", other, value)
		}
		if begin != "" && begin != "[" {
			begin, field = fmt.Sprintf(begin, ","+other), ","+value
		}
	} else if begin != "" && begin != "[" {
		begin = fmt.Sprintf(begin, "")
	}
	rows := make([]string, 6)
	for i := range rows {
		rows[i] = fmt.Sprintf(kind.row, i, field)
	}
	wrong := pick("wrong row", "", "", "garbage", "\x00\xff", "{", "1,2", rows[5][:3])
	if wrong != "" {
		rows[4+rapid.IntRange(0, 1).Draw(t, "at")] = wrong
	}
	text := begin + strings.Join(rows, kind.between) + kind.end
	if rapid.Bool().Draw(t, "packed") {
		text = damaged(t, pack(text))
	}
	path := "sound." + name
	if wrong != "" {
		path = harmed + name
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if name == "record" {
		return []string{"compare", path, "--set", "model=llama3-8b", "--set", "gpu=h200", "--out", "o"}
	}
	return rapid.SampledFrom([][]string{
		{"simulate", "--set", "workload.trace=" + path, "--set", "workload.rate=1", "--set",
			"workload.requests=" + pick("requests", "3", "4", "6", "0"), "--set",
			"system.preset=vllm", "--json"},
		{"trace", "describe", path, "--json"}, {"trace", "convert", path, "--out", "o.csv"},
	}).Draw(t, "reads")
}

func pack(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write([]byte(text))
	z.Close()
	return out.String()
}

// damaged is a file cut short, with another byte, with more behind it or in the middle, or whole.
func damaged(t *rapid.T, text string) string {
	at := rapid.IntRange(0, len(text)-1).Draw(t, "at byte")
	switch rapid.IntRange(0, 5).Draw(t, "damage") {
	case 0:
		return text[:at]
	case 1:
		return text[:at] + string([]byte{text[at] ^ 0x55}) + text[at+1:]
	case 2:
		return text + "garbage"
	case 3:
		return text[:at] + rapid.SampledFrom([]string{"\x00", "\"", "\n", "}", "[", "1e999",
			"99999999999999999999"}).Draw(t, "more") + text[at:]
	case 4:
		return text + text[:at]
	}
	return text
}

// drawDamage damages a file of any kind that users name, and reads it.
func drawDamage(t *rapid.T) []string {
	from := rapid.SampledFrom([]string{"card.toml", "model.json", "prices.toml", "nested.toml",
		"record.csv", "heads.json", "S/summary.json", "S/config.toml", "S/index.json",
		"S/question.toml", "S/runs/packed.zip"}).Draw(t, "file")
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	set := func(setting string, more ...string) []string {
		return append([]string{"simulate", "--set", setting, "--set", "workload.requests=2", "--set",
			"workload.rate=1", "--set", "system.preset=vllm"}, more...)
	}
	to, args := "drawn-"+filepath.Base(from), []string(nil)
	switch from {
	case "card.toml":
		args = set("gpu=" + to)
	case "model.json":
		args = set("model=" + to)
	case "heads.json":
		args = set("prefill.pattern="+to, "--set", "prefill.attention=minference")
	case "prices.toml":
		args = []string{"list", "prices", to}
	case "nested.toml":
		args = []string{rapid.SampledFrom([]string{"simulate", "goodput", "plan"}).Draw(t,
			"of"), to}
	case "record.csv":
		args = []string{"compare", to, "--set", "model=llama3-8b", "--set", "gpu=h200", "--out", "o"}
	default:
		if err := os.CopyFS("o", os.DirFS("S")); err != nil {
			t.Fatal(err)
		}
		to = "o" + strings.TrimPrefix(from, "S")
		args = rapid.SampledFrom([][]string{{"report", "o"}, {"report", "o", "--format", "png"},
			{"compare", "S", "o"},
			{"simulate", "nested.toml", "--out", "o"}}).Draw(t, "of results")
	}
	if err := os.WriteFile(to, []byte(damaged(t, string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
	return args
}

// drawOutput names inputs, folders that hold inputs, and others as what a command writes to.
func drawOutput(t *rapid.T) []string {
	to := func(flag string) string {
		return rapid.SampledFrom([]string{"o", "o/p", ".", "S", "S/runs", "S/summary.json", "in",
			"in/runs", "in/ttft.csv", "in/config.toml", "in/.hidden", "trace.csv", "hard.csv", "soft.csv",
			"card.toml", "nested.toml", "record.csv", "folder", "loop", "zero", "/dev/full"}).Draw(t, flag)
	}
	config := rapid.SampledFrom([]string{"nested.toml", "in/config.toml", "in/base.toml",
		"S/config.toml"}).Draw(t, "config")
	trace := rapid.SampledFrom([]string{"trace.csv", "in/ttft.csv", "in/runs/x/t.csv"}).
		Draw(t, "trace")
	poisson := []string{"--set", "workload.arrivals=poisson", "--set", "workload.rate=1"}
	args := rapid.SampledFrom([][]string{
		{"simulate", "tiny.toml", "--set", "workload.trace=" + trace}, {"simulate", config},
		{"simulate", config}, {"goodput", config},
		{"whatif", config, "--vary", "link=1..2", "--metric", "ttft_mean"},
		{"compare", "record.csv", "--set", "model=llama3-8b", "--set", "gpu=card.toml"},
		{"report", "S", "--format", "png"}, {"trace", "describe", trace}, {"trace", "convert", trace},
		{"report", "S"},
	}).Draw(t, "command")
	args = append(args, "--out", to("out"))
	switch args[0] {
	case "plan", "goodput", "whatif":
		args = append(args, poisson...)
		fallthrough
	case "simulate":
		args = append(args, "--points", to("points"))
	}
	if !strings.Contains("trace report", args[0]) && rapid.Bool().Draw(t, "force") {
		args = append(args, "--force")
	}
	return args
}

// regular are the texts of all regular files below the working folder.
func regular(t *testing.T) map[string]string {
	texts := map[string]string{}
	if err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		texts[path] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return texts
}

// reads reports whether a command reads a file, which may have other names, or one that its
// configuration names.
func reads(args []string, path string) bool {
	also := map[string][]string{
		"nested.toml": {"trace.csv", "card.toml"}, "S/config.toml": {"trace.csv", "card.toml"},
		"in/config.toml": {"in/ttft.csv"}, "in/base.toml": {"trace.csv"},
	}
	for i, word := range args {
		if i > 0 && (args[i-1] == "--out" || args[i-1] == "--points") {
			continue
		}
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		word = filepath.Clean(word)
		for _, name := range append(also[word], word) {
			if name == "hard.csv" || name == "soft.csv" {
				name = "trace.csv"
			}
			if path == name || strings.HasPrefix(path, name+"/") {
				return true
			}
		}
	}
	return false
}
