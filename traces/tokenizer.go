package traces

import "github.com/sparseserve/sparseserve/internal/warn"

// Tokenizer is the name of the tokenizer that counts prompt lengths.
type Tokenizer string

// GuessedTokenizer warns that a model names no tokenizer, so another tokenizer counts prompts.
func GuessedTokenizer(model, tokenizer string) warn.Warning {
	return warn.New(warn.Tokenizer,
		"tokens of texts are counted with the tokenizer of %s, a guess, because %s "+
			"names none: set workload.tokenizer", tokenizer, model)
}

// Counts reports whether the model's tokenizer determines prompt lengths.
func (s *Stream) Counts() bool { return s.spec.Tokenizer == "" && s.src.texts() }

// The tokenizers for which the built-in table has lengths.
const (
	Llama2 Tokenizer = "llama2" // 32,000 tokens
	Llama3 Tokenizer = "llama3" // 128,256 tokens
)
