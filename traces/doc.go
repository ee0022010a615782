// Package traces is the workload: which requests arrive, when, and how long they are.
//
// Lengths come from the built-in LongBench mix, given distributions or a trace file, times from an
// arrival process, the file itself or, in a closed loop, the ends of earlier requests. [Open] joins
// the two into a [Stream] that makes one request at a time, so memory does not grow with their
// number.
//
// Following one request, read
//
//	spec.go      the [workload] table of a configuration, and what is refused
//	stream.go    Open and Stream: lengths, then time, then output scale
//	mix.go       lengths drawn from the built-in mix; table.go has its quantiles
//	synthetic.go lengths drawn from given distributions, which lengths.go parses
//	sessions.go  sessions whose turns follow one another, made up or read
//	arrivals.go  Poisson, Gamma and fixed spacing; the file's own times
//	stages.go    rates that change
//	clients.go   closed loops
//
// and for a request that is read from a file
//
//	open.go      file or folder, which format; formats.go lists the formats
//	reader.go    line by line to requests; lines.go bounds the length of a line
//	csv.go, longbench.go, mooncake.go
//	             CSV and JSON formats
//	sharegpt.go  conversations, whose texts texts.go counts
//	folder.go    the files of a LongBench folder mixed into one trace
//
// measured.go reads the record of a real server, its requests with their latencies:
// measured_csv.go, measured_vllm.go, measured_inferenceperf.go, measured_guidellm.go, a format
// each. describe.go, with what prefix caches find (reuse.go), convert.go
// and count.go serve the command line.
package traces
