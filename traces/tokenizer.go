package traces

// Tokenizer names the tokenizer in which prompt lengths are counted.
type Tokenizer string

// The tokenizers for which the built-in table has lengths.
const (
	Llama2 Tokenizer = "llama2" // 32,000 tokens
	Llama3 Tokenizer = "llama3" // 128,256 tokens
)

// TokenizerFor returns the tokenizer of the table nearest to a model's, by the
// size of its vocabulary in tokens: text makes fewer tokens of a large one.
func TokenizerFor(vocabulary int) Tokenizer {
	if vocabulary >= 64_000 {
		return Llama3
	}
	return Llama2
}
