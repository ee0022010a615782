// Package traces says which requests arrive, when, and how long they are.
//
// A workload is two independent parts. Lengths come from the built-in LongBench mix or from a
// trace file; times come from an arrival process or from the file itself. [Open] joins the two
// into a [Stream] that makes one request at a time, so memory does not grow with their number.
//
// Following one request, read
//
//	spec.go      the [workload] table of a configuration, and what is refused
//	stream.go    Open and Stream: lengths, then time, then output scale
//	mix.go       lengths drawn from the built-in mix; table.go has its quantiles
//	arrivals.go  Poisson, Gamma and fixed spacing; the file's own times
//
// and for a request that is read from a file
//
//	open.go      file or folder, which format
//	reader.go    line by line to requests; lines.go bounds the length of a line
//	longbench.go, azure.go, mooncake.go, burstgpt.go, vidur.go, own.go
//	             one format each
//	folder.go    the files of a LongBench folder mixed into one trace
//
// measured.go reads the record of a real server, its requests with the times that they took:
// measured_csv.go, measured_vllm.go, measured_inferenceperf.go, measured_guidellm.go, a format
// each.
//
// describe.go, convert.go and count.go serve the command line. gen_table.go makes the built-in
// table. The scores files hold the process that gives attention scores to KV blocks; it stands
// apart from all of the above.
package traces
