// Package prefix shares the KV of prompts with a common prefix.
//
// A prompt's content is a list of pieces (content.go). Its chain gives every prefix a key. pool.go
// shares HBM blocks by these keys as vLLM V1 does; radix.go is SGLang's tree. lower.go adds chunks
// in DRAM and on SSD below either, each tier a list (tier.go); radix_lower.go connects them to the
// tree, as HiCache does. A Grant (grant.go) is the memory that one request holds. stack.go computes
// the hits of LRU caches of every capacity for a trace, optimum.go the hits of the optimal cache of
// one capacity, which knows the trace.
package prefix
