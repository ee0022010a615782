package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"github.com/BurntSushi/toml"
)

// JSONWords describes the fault of a text that was decoded as JSON.
func JSONWords(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF.Error()
	case !errors.As(err, &kind):
		return strings.TrimPrefix(err.Error(), "json: ")
	case kind.Field == "":
		return fmt.Sprintf("want %s, got %s", kindOf(kind.Type), kind.Value)
	}
	key := kind.Field[strings.LastIndexFunc(kind.Field, unicode.IsUpper)+1:]
	if _, inner, ok := strings.Cut(key, "."); ok && len(key) < len(kind.Field) {
		key = inner // what precedes is a type's name
	}
	return fmt.Sprintf("%s: want %s, got %s", key, kindOf(kind.Type), kind.Value)
}

// TOMLFault describes the fault of a TOML file's text, with its line, in the decoder's words.
func TOMLFault(path, text string, err error) error {
	var parse toml.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%s: no valid TOML: %w", path, err)
	}
	line := 1 + strings.Count(text[:min(parse.Position.Start, len(text))], "\n")
	return fmt.Errorf("%s:%d: no valid TOML: %s", path, line, parse.Message)
}

// DecodeTOML decodes the text of a TOML file. Its error names file and line.
func DecodeTOML(path, text string, into any) error {
	if _, err := toml.Decode(text, into); err != nil {
		return TOMLFault(path, text, err)
	}
	return nil
}

// PackedFault describes the fault of compressed data of a kind. It returns system errors unchanged.
// It hides io.EOF, which means that data end too early.
func PackedFault(kind string, err error) error {
	var system *fs.PathError
	if errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("damaged %s data: %v", kind, err)
}
