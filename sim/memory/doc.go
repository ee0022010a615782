// Package memory grants KV memory to requests.
//
// A Grant (grant.go) is the memory that one request holds. Budget (budget.go) counts its blocks, as
// vLLM's block manager does; Hot (hot.go) has hot buffers in HBM over DRAM. pool.go shares HBM
// blocks with a common prefix by their keys, as vLLM V1 does; radix.go is SGLang's tree. lower.go
// adds chunks in DRAM and on SSD below either, each tier a list (tier.go); radix_lower.go connects
// them to the tree, as HiCache does.
package memory
