package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// paths are the traps, good files among them, and names of nothing.
var paths = []string{
	"empty", "binary", "half.json", "list.json", "half.toml", "deep.toml", "trace.csv", "back.csv",
	"huge.csv", "azure.csv",
	"moon.jsonl", "tiny.toml", "fifo", "folder", "loop", "nowhere",
	"=1+1|x\nforged\tline\r", "@a", "-2+3", "/dev/zero", "/dev/null", "/dev/full",
	"..", "a\x00b", "-", "~", "zero", "R", "\x1b[2J\u009bevil\nsparseserve: forged",
}

// outputs are names to write to: inputs under their own and other names, devices, what may be
// written.
var outputs = []string{
	"o.csv", "o.html", "o.toml", "-", "/dev/full", "/dev/null", "folder", "nowhere/o.csv", "loop",
	"trace.csv", "./trace.csv", "hard.csv", "soft.csv", "tiny.toml", "R/summary.json", "R/new.json",
	"o\ntouch X\n#", "zero",
}

// numbers are at the ends of types and forms.
var numbers = []string{
	"0", "1", "-1", "2", "0.5", "1e-300", "1e300", "-1e300", "nan", "inf", "-inf",
	"9223372036854775807", "-9223372036854775808",
	"9223372036854775808", "18446744073709551615", "18446744073709551616",
	"[9223372036854775808, -1]", "0x10", "1_000", "007", "1e", ".", "", " ", "true", "[]", "[1]",
	"[1, 2]", "[[1, 2]]", "{}", "\"1\"", "1979-05-27",
}

func drawCommand(t *rapid.T, keys []schemaKey) []string {
	schema := schema{keys, rapid.Bool().Draw(t, "sensible")}
	sets := func(most int) (args []string) {
		for range rapid.IntRange(0, most).Draw(t, "settings") {
			name, value := schema.draw(t)
			args = append(args, "--set", name+"="+value)
		}
		return args
	}
	small := []string{"--set",
		fmt.Sprintf("workload.requests=%d", rapid.IntRange(1, 4).Draw(t, "requests"))}
	if schema.sensible { // one run, so that it may come to an end
		small = append(small, "--set", "workload.rate=1", "--set", "system.preset="+
			rapid.SampledFrom([]string{"vllm", "sparseserve", "vllm-psa"}).Draw(t, "preset"))
	}
	output := func() string { return rapid.SampledFrom(outputs).Draw(t, "output") }
	path := func() string { return rapid.SampledFrom(paths).Draw(t, "path") }
	switch rapid.IntRange(0, 22).Draw(t, "command") {
	case 0, 1, 2:
		return append(append([]string{"simulate"}, small...), sets(5)...)
	case 3:
		drawFile(t, &schema)
		return append([]string{"simulate", "drawn.toml", "--json"}, small...)
	case 4:
		drawFile(t, &schema)
		return append([]string{"simulate", "drawn.toml"}, small...)
	case 5:
		return append(append([]string{"goodput", "--set", "goodput.coarse=true", "--set",
			"goodput.width=1"},
			small...), sets(3)...)
	case 6:
		return append([]string{rapid.SampledFrom([]string{"simulate", "goodput", "plan"}).Draw(t,
			"of a file"), path()}, small...)
	case 7:
		return []string{"compare", path(), "--set", "model=llama3-8b", "--set", "gpu=h200", "--out", "o"}
	case 8:
		return []string{"trace", "describe", path(), "--json"}
	case 9:
		return []string{"trace", "convert", "trace.csv", "--out", output()}
	case 11:
		return []string{"report", rapid.SampledFrom([]string{"R", path()}).Draw(t, "folder"), "--out",
			output()}
	case 12:
		return []string{"calibrate", "refit", path(), "--out", output()}
	case 13:
		return append([]string{"whatif", "--vary", "link=1..2", "--steps",
			rapid.SampledFrom(numbers).Draw(t, "steps")}, small...)
	case 14:
		return append([]string{"simulate", rapid.SampledFrom([]string{"tiny.toml", path()}).Draw(t,
			"config"), "--tasks", rapid.SampledFrom(numbers).Draw(t, "tasks"),
			"--out", output()}, small...)
	case 15:
		return append([]string{"simulate", "--set", "system.preset=vllm", "--set", "workload.rate=1",
			"--set", "seed=" + rapid.SampledFrom(numbers).Draw(t, "seed")}, small...)
	case 16, 17:
		return drawData(t)
	case 18, 19:
		return drawDamage(t)
	case 20, 21, 22:
		return drawOutput(t)
	case 10:
		return []string{rapid.SampledFrom([]string{"report", "compare", "validate", "list"}).Draw(t,
			"of a folder"), path(), path()}
	default:
		words := rapid.SampledFrom([]string{"simulate", "list", "keys", "gpus", "--json", "--set",
			"--workers", "-1", "0", "--help", "--out", "o",
			"version", "paper", "claims", "--numbers", "trace", "describe", "help", "--", "=", "a=b",
			"--set=",
			"workload.rate=[0.1", "system.preset=vllm"})
		return append(rapid.SliceOfN(words, 0, 5).Draw(t, "words"), small...)
	}
}

// schema is what keys are drawn from: sensible draws are known keys with values in their range.
type schema struct {
	keys     []schemaKey
	sensible bool
}

func (s *schema) draw(t *rapid.T) (name, value string) {
	key := rapid.SampledFrom(s.keys).Draw(t, "key")
	if s.sensible {
		return strings.TrimSuffix(key.name, "[]"), sensibleValue(t, key)
	}
	return drawName(t, key), drawValue(t, key)
}

// drawName is the key's name, or one that is nearly it.
func drawName(t *rapid.T, key schemaKey) string {
	switch rapid.IntRange(0, 19).Draw(t, "name") {
	case 0:
		return key.name + "x"
	case 1:
		return "." + key.name + "."
	case 2:
		return strings.ToUpper(key.name)
	}
	return strings.TrimSuffix(key.name, "[]")
}

// drawValue is a value within the key's range, at an end of it, or of anything.
func drawValue(t *rapid.T, key schemaKey) string {
	switch how := rapid.IntRange(0, 9).Draw(t, "value"); {
	case how < 3:
		return sensibleValue(t, key)
	case how < 5 && len(key.ends) > 0:
		return rapid.SampledFrom(key.ends).Draw(t, "end")
	case how < 8:
		return rapid.SampledFrom(numbers).Draw(t, "number")
	}
	return rapid.SampledFrom(paths).Draw(t, "path")
}

// sensibleValue is one of the key's words, or a number that is not far above the least.
func sensibleValue(t *rapid.T, key schemaKey) string {
	switch {
	case len(key.words) > 0:
		return rapid.SampledFrom(key.words).Draw(t, "word")
	case key.kind == "true or false":
		return strconv.FormatBool(rapid.Bool().Draw(t, "switch"))
	case len(key.ends) == 0:
		return rapid.SampledFrom([]string{"1", "2", "40"}).Draw(t, "plain")
	}
	low, _ := strconv.ParseFloat(key.ends[0], 64)
	if strings.HasPrefix(key.kind, "integer") {
		return strconv.Itoa(int(low) + rapid.IntRange(0, 4096).Draw(t, "above the least"))
	}
	high := 100.0
	if len(key.ends) > 1 {
		high, _ = strconv.ParseFloat(key.ends[1], 64)
	}
	return strconv.FormatFloat(low+min(100, high-low)*rapid.Float64Range(0.01, 0.99).Draw(t, "above"),
		'g', 6, 64)
}

// drawFile writes drawn.toml, of keys that have their place and of axes.
func drawFile(t *rapid.T, schema *schema) {
	var text, axes strings.Builder
	for range rapid.IntRange(0, 6).Draw(t, "keys") {
		name, value := schema.draw(t)
		if _, err := strconv.ParseFloat(value, 64); err != nil && value != "true" &&
			!strings.ContainsAny(value, `[{"`) {
			value = strconv.Quote(value)
		}
		if rapid.IntRange(0, 3).Draw(t, "axis") > 0 {
			fmt.Fprintf(&text, "%s = %s\n", name, value)
			continue
		}
		kind := rapid.SampledFrom([]string{"grid", "grid", "zip", "list", "gird"}).Draw(t, "kind")
		fmt.Fprintf(&axes, "[[axis]]\n%s.%s = [%s, %[3]s]\n", kind, name, value)
	}
	if err := os.WriteFile("drawn.toml", []byte(text.String()+axes.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
