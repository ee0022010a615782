// Package traces is the workload: which requests arrive, when, and how long they are.
//
// Lengths come from the built-in LongBench mix, from given distributions or from a trace file.
// Times come from an arrival process, from the file or, in a closed loop, from the ends of earlier
// requests. [Open] combines both into a [Stream], which makes one request at a time, so memory does
// not grow with their number.
//
// Following one request, read
//
//	spec.go      the [workload] table of a configuration, and its validation
//	stream.go    Open and Stream: lengths, then time, then output scale
//	mix.go       lengths drawn from the built-in mix; table.go has its quantiles
//	synthetic.go lengths drawn from given distributions, which lengths.go parses
//	sessions.go  sessions with consecutive turns, generated or read
//	arrivals.go  Poisson, Gamma and fixed spacing; the file's own times
//	stages.go    rates that change over time
//	clients.go   closed loops
//
// and for a request that is read from a file
//
//	open.go      file or folder
//	rows         package: bytes, decompressed, to records of CSV or JSON with their lines
//	formats.go   the formats: where a record has the fields of a request, and how it is detected
//	lines.go     records to rows; content.go, hashes.go, texts.go, sharegpt.go and longbench.go
//	             each read the fields of one format
//	reader.go    rows to requests
//	grouped.go   rows to sessions
//	folder.go    the files of a LongBench folder mixed into one trace
//
// describe.go with reuse.go (prefix cache reuse), convert.go and count.go serve the command line.
// Below this package, reuse has the hits of prefix caches of any size, and records reads recordings
// of real servers.
package traces
