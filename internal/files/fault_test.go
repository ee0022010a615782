package files

import (
	"strings"
	"testing"
)

// A text that is no TOML is an error with its line and what is wanted, for every kind of slip.
func TestTOMLFaults(t *testing.T) {
	for text, want := range map[string]string{
		"[workload\nrate=1":        `f:1: "[workload" is no valid TOML: a table is written as [TABLE]`,
		"[[a]\n":                   `f:1: "[[a]" is no valid TOML: a table is written as [TABLE]`,
		"a=1\nrate=\n":             `f:2: "rate=" is no valid TOML: a value is a number`,
		"x = tru":                  `f:1: "x = tru" is no valid TOML: a value is a number`,
		"x = 1\nx = 2":             "there twice",
		"a = 1\n[a]":               "there twice",
		"x = 'a\ny = 2":            "no quote at its end",
		"x = \"\"\"a":              "no quote at its end",
		"x = [1 2]":                "a list wants commas",
		"x = {a = 1 b = 2}":        "a table in braces",
		"x = 1 y = 2":              "one KEY = VALUE a line",
		"x\n":                      "a line is KEY = VALUE",
		"= 3":                      "a line is KEY = VALUE",
		"x = 01":                   "a number is written as",
		"x = .5":                   "a number is written as",
		"x = 0o9":                  "a number is written as",
		"x = 18446744073709551616": "an integer is from",
		"x = 1e999":                "a number at most 1.8e308",
		"x = 2026-13-01":           "a date is written as",
		`x = "a\q"`:                "an escape is",
		`x = "\uD800"`:             "an escape is",
		"x = \"\xff\"":             "no UTF-8 text",
		"x = \x00":                 "a control character is in the file",
		"x = [,]":                  "a comma stands where",
	} {
		var v map[string]any
		err := DecodeTOML("f", text, &v)
		if err == nil || !strings.HasPrefix(err.Error(), "f:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	var v map[string]any
	if err := DecodeTOML("f", "x = 1", &v); err != nil || v["x"] != int64(1) {
		t.Error(v, err)
	}
}

// A text that is no JSON is an error with its place, the character there and what is wanted.
func TestJSONFaults(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "f: empty",
		"[1,\n2":              "f:2: damaged, no valid JSON at column 1: ends within a value",
		`{"a":}`:              "column 6: '}' where a value is wanted",
		"{a:1}":               "column 2: 'a' where a key in quotes or } is wanted",
		`{"a" 1}`:             "column 6: '1' where a colon is wanted",
		`{"a":1 "b"}`:         "column 8: '\"' where a comma or } is wanted",
		"[1 2]":               "'2' where a comma or ] is wanted",
		"{} x":                "'x' where the end is wanted",
		"[nul]":               "']' where true, false or null is wanted",
		"[-]":                 "']' where a digit of a number is wanted",
		"[NaN]":               "'N' where a value is wanted",
		"[\"a\nb\"]":          `f:1: damaged, no valid JSON at column 4: '\n' where a character that`,
		`["\q"]`:              `'q' where an escape such as \n is wanted`,
		`["\u12x4"]`:          `'x' where a digit of \uXXXX is wanted`,
		"[[1], {\"a\": \"b\"": "cut short",
		"{\"a\": 1}":          "f:1: want a list, got object",
	} {
		var v []any
		err := ParseJSON("f", []byte(text), &v)
		if err == nil || !strings.HasPrefix(err.Error(), "f:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	deep := strings.Repeat("[", 20000)
	var v any
	if err := ParseJSON("f", []byte(deep), &v); err == nil ||
		!strings.Contains(err.Error(), "more than 10000 deep") {
		t.Error(err)
	}
}

// Damage of packed data is told by its kind.
func TestPackedFaults(t *testing.T) {
	whole := string(zipped(strings.Repeat("some text that packs ", 50)))
	for data, want := range map[string]string{
		whole[:len(whole)/2]: "gzip data that end too early: the file is cut short",
		whole[:len(whole)-8] + "\x00\x00\x00\x00" + whole[len(whole)-4:]: "check sum",
		whole + "garbage that is long":                                   "something else behind",
		whole[:10] + "\xff\xff\xff\xff" + whole[14:]:                     "damaged at byte",
	} {
		r, err := Unpack(strings.NewReader(data))
		if err == nil {
			_, err = ReadAll("f", r)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", data, err, want)
		}
	}
}
