package traces

// Tokenizer names the tokenizer in which prompt lengths are counted.
type Tokenizer string

// The tokenizers for which the built-in table has lengths.
const (
	Llama2 Tokenizer = "llama2" // 32,000 tokens
	Llama3 Tokenizer = "llama3" // 128,256 tokens
)
