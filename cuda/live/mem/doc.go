// Package mem is the memory of the live device: what comes and goes with requests (arena.go), pages
// of DRAM and HBM (pages.go), buffers that grow with the largest step (buffer.go), arrays on their
// way to the GPU (staging.go), and pinned memory kept from one device to the next (pinned.go).
package mem
