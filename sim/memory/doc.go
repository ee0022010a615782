// Package memory grants KV memory to requests.
//
// A Grant (grant.go) is the memory that one request holds. A Pool (pool.go) allocates blocks and
// shares those with a common prefix by their keys, as vLLM V1 does; radix.go is SGLang's tree. Hot
// (hot.go) has hot buffers in HBM over a Pool of DRAM. lower.go adds chunks in DRAM and SSD below
// either; each tier is a list (tier.go). radix_lower.go connects them to the tree, as HiCache does.
package memory
