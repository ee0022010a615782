package files

import (
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// said maps a part of a library's error message to words for the owner of the file. The first match
// holds.
type said struct{ part, words string }

func inWords(table []said, message, other string) string {
	for _, s := range table {
		if strings.Contains(message, s.part) {
			return s.words
		}
	}
	return other
}

const cutShort = "ends within a value: the text is cut short"

// outOfPlace matches an error about one character of a JSON text.
var outOfPlace = regexp.MustCompile(`^invalid character ('.+'|[^ ]+) `)

var jsonFaults = []said{
	{"beginning of value", "a value"}, {"beginning of object key", "a key in quotes or }"},
	{"after object key:value pair", "a comma or }"}, {"after object key", "a colon"},
	{"after array element", "a comma or ]"}, {"after top-level value", "the end"},
	{"in literal", "true, false or null"}, {"in string escape code", "an escape such as \\n"},
	{"hexadecimal", "a digit of \\uXXXX"}, {"in string", "a character that strings may have"},
	{"numeric", "a digit of a number"},
}

// JSONWords describes the fault of a text that was decoded as JSON.
func JSONWords(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &kind):
		return notJSON(err)
	case kind.Field == "":
		return fmt.Sprintf("want %s, got %s", kindOf(kind.Type), kind.Value)
	}
	key := kind.Field[strings.LastIndexFunc(kind.Field, unicode.IsUpper)+1:]
	if _, inner, ok := strings.Cut(key, "."); ok && len(key) < len(kind.Field) {
		key = inner // what precedes is a type's name
	}
	return fmt.Sprintf("%s: want %s, got %s", key, kindOf(kind.Type), kind.Value)
}

// notJSON describes the syntax fault of a text that is not JSON.
func notJSON(err error) string {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return cutShort
	case !errors.As(err, &syntax):
		return "no valid JSON"
	}
	message := syntax.Error()
	found := outOfPlace.FindStringSubmatch(message)
	switch {
	case strings.HasPrefix(message, "unexpected end"):
		return cutShort
	case strings.Contains(message, "max depth"):
		return "lists and objects lie more than 10000 deep"
	case found == nil:
		return "no valid JSON"
	}
	return fmt.Sprintf("%s where %s is wanted", found[1],
		inWords(jsonFaults, message, "something else"))
}

// Hints that several faults share.
const (
	wantEscape = `an escape is \n, \t, \" or \uXXXX; a string in '...' has none`
	wantNumber = "a number is written as 12, 0.5 or 1e6"
	wantQuote  = "a string has no quote at its end"
	isNoText   = "a control character is in the file, so it is no text"
)

var tomlFaults = []said{
	{"already", "the key or table is there twice; leave one out"},
	{"is not a table", "the key of a table has a value already; leave one out"},
	{"out of range", "an integer is from -9223372036854775808 to 9223372036854775807, and a number " +
		"at most 1.8e308"},
	{"control character", isNoText}, {"NULL", isNoText}, {"UTF-8 byte", "the file is no UTF-8 text"},
	{"datetime", "a date is written as 2026-11-09, a time as 12:30:00"},
	{"hexadecimal digit", wantEscape}, {"escape", wantEscape}, {"not valid UTF-8", wantEscape},
	{"cannot contain newlines", wantQuote}, {`expected '"`, wantQuote}, {`expected "'`, wantQuote},
	{`unexpected '"`, "a string has too many quotes"},
	{`unexpected "'`, "a string has too many quotes"},
	{"inline table", "a table in braces wants commas between its keys, } at its end, and one line"},
	{"array terminator", "a list wants commas between its values and ] at its end"},
	{"comma", "a comma stands where a value is wanted"},
	{"nteger", wantNumber}, {"loat", wantNumber}, {"number", wantNumber}, {"digit", wantNumber},
	{"table", "a table is written as [TABLE], one of several as [[TABLE]]"},
	{"newline, comment", "one KEY = VALUE a line"},
	{"value", "a value is a number, true, false, a string in quotes, a list or a table"},
}

// TOMLFault describes the fault of a TOML file's text, with its line.
func TOMLFault(path, text string, err error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%s: no valid TOML", path)
	}
	words := inWords(tomlFaults, parse.Message, "a line is KEY = VALUE, [TABLE] or a comment")
	line, lines := parse.Position.Line, strings.Split(text, "\n")
	if strings.Contains(parse.Message, "table") && strings.Contains(parse.Message, `'\n'`) {
		line-- // the library has read on to the next
	}
	if line < 1 || line > len(lines) {
		return fmt.Errorf("%s: no valid TOML: %s", path, words)
	}
	shown := strings.TrimSpace(lines[line-1])
	if len(shown) > 60 {
		shown = strings.ToValidUTF8(shown[:60], "") + "..."
	}
	return fmt.Errorf("%s:%d: %q is no valid TOML: %s", path, line, shown, words)
}

// DecodeTOML decodes the text of a TOML file. Its error names file and line.
func DecodeTOML(path, text string, into any) error {
	if _, err := toml.Decode(text, into); err != nil {
		return TOMLFault(path, text, err)
	}
	return nil
}

// PackedFault describes the fault of compressed data of a kind. It returns system errors unchanged.
func PackedFault(kind string, err error) error {
	var corrupt flate.CorruptInputError
	var system *fs.PathError
	switch {
	case errors.As(err, &system):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%s data that end too early: the file is cut short", kind)
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%s data that are damaged: their check sum is another", kind)
	case errors.Is(err, gzip.ErrHeader):
		return fmt.Errorf("%s data that are damaged, or have something else behind them", kind)
	case errors.As(err, &corrupt):
		return fmt.Errorf("%s data that are damaged at byte %d", kind, int64(corrupt))
	}
	return fmt.Errorf("%s data that are damaged", kind)
}
