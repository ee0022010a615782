// Package prefix shares the KV of prompts that begin alike.
//
// A prompt's content is a list of pieces (content.go), whose chain gives every prefix a key.
// pool.go shares blocks of HBM by these keys as vLLM V1 does; radix.go is SGLang's tree instead.
// Below either lower.go keeps chunks of them in DRAM and on SSD, each a list by tier.go;
// radix_lower.go has the tree use it, as HiCache does. A request's part of them is its Grant
// (grant.go).
// stack.go counts what caches of every capacity would have of a trace, optimum.go what the best of
// one capacity would, which knows the trace.
package prefix
