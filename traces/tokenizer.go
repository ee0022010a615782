package traces

import (
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
	"github.com/sparseserve/sparseserve/internal/warn"
)

// Tokenizer names the tokenizer in which prompt lengths are counted.
type Tokenizer string

// GuessedTokenizer warns that a model names no tokenizer, so that prompts are counted with another.
func GuessedTokenizer(model, tokenizer string) warn.Warning {
	return warn.New(warn.Tokenizer,
		"tokens of texts are counted with the tokenizer of %s, a guess, because %s "+
			"names none: set workload.tokenizer", tokenizer, model)
}

// Counts reports whether the tokenizer of the model decides how long prompts are.
func (s *Stream) Counts() bool { return s.spec.Tokenizer == "" && s.src.texts() }

// The tokenizers for which the built-in table has lengths.
const (
	Llama2 Tokenizer = "llama2" // 32,000 tokens
	Llama3 Tokenizer = "llama3" // 128,256 tokens
)

// IsOf reports whether the trace has one of the formats; the built-in mix has LongBench's. Standard
// input, which is read once, may have any.
func (s Spec) IsOf(formats ...string) bool {
	if s.Trace == BuiltIn {
		return slices.Contains(formats, FormatLongBench)
	}
	if !s.FromFile() || s.Trace == files.Stdin {
		return s.FromFile()
	}
	src, format, err := openTrace(s.Trace, wholeFile(s.Format))
	if err != nil {
		return false
	}
	src.Close()
	return slices.Contains(formats, format)
}
