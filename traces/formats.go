package traces

import (
	"errors"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Formats of trace files.
const (
	FormatLongBench = "longbench"
	FormatAzure     = "azure"
	FormatMooncake  = "mooncake"
	FormatBurstGPT  = "burstgpt"
	FormatVidur     = "vidur"
	FormatShareGPT  = "sharegpt"
	FormatServeGen  = "servegen"
	FormatSplitwise = "splitwise-sim"
	FormatDynamo    = "dynamo"
	FormatServeSim  = "llmservingsim"
	FormatMultiTurn = "aiperf"
	FormatCustom    = "vllm-custom"
	FormatCSV       = "csv" // the project's own
)

// Format is one format of trace files: CSV, or JSON lines with a decoder.
type Format struct {
	Name, About string

	csv csvFormat
	// json makes the decoder of a file by its first value; nil for CSV.
	json  func(o *options, first []byte) decoder
	keys  []string // of JSON values in this format only; a|b is one of two
	talks bool     // conversations, read by sharegpt.go
	turns []string // keys of values that are turns of sessions (grouped.go)
}

// anyKey in turns makes every file one of sessions.
const anyKey = "*"

// sessions reports whether a file has sessions, by the keys of its first value.
func (f *Format) sessions(keys []string) bool {
	return slices.ContainsFunc(f.turns, func(key string) bool {
		return key == anyKey || slices.Contains(keys, key)
	})
}

func (f *Format) isJSON() bool { return f.keys != nil }

// needs lists the required keys or columns of the format.
func (f *Format) needs() []string {
	switch {
	case f.isJSON():
		return f.keys
	case f.csv.timeOptional:
		return []string{f.csv.prompt, f.csv.output}
	}
	return []string{f.csv.time, f.csv.prompt, f.csv.output}
}

// missing returns the first key that a record lacks, or "".
func (f *Format) missing(has func(key string) bool) string {
	for _, key := range f.needs() {
		if a, b, two := strings.Cut(key, "|"); !has(a) && !(two && has(b)) {
			return key
		}
	}
	return ""
}

// fits returns an error if a file does not have the format. JSON values report their own missing
// keys.
func (f *Format) fits(json bool, has func(key string) bool) error {
	switch {
	case f.isJSON() != json:
		return errors.New("no file of format " + f.Name + ": one is JSON, the other is not")
	case !json && f.missing(has) != "":
		return errors.New("has no column " + f.missing(has))
	}
	return nil
}

// Formats lists the formats in order of detection. To add a CSV format, add an entry. To add a
// format of JSON lines, add a decoder in its own file and an entry.
//
//   - Azure LLM inference traces of 2023 and 2024 (github.com/Azure/AzurePublicDataset; Patel et
//     al., Splitwise, ISCA 2024; Stojkovic et al., DynamoLLM, HPCA 2025): calendar times with
//     seven fractional digits in 2023, six and a zone in 2024. A request of 0 tokens was never
//     served.
//   - BurstGPT (github.com/HPMLL/BurstGPT; Wang et al., KDD 2025): the model is the set; 0
//     response tokens mark a failed request. Release 2.0 names conversations.
//   - Vidur (github.com/microsoft/vidur; Agrawal et al., MLSys 2024): traces of lengths only have
//     no arrived_at.
//   - ServeGen (github.com/alibaba/ServeGen; Xiang et al., 2025), as its example saves a workload.
//   - splitwise-sim (github.com/Mutinifni/splitwise-sim; Patel et al., ISCA 2024).
//   - The project's own, written by Convert: arrived_s, or arrival_s as in records, counts from the
//     first request; traces of lengths only omit it. The optional column session names
//     conversations; content describes prompts (content.go).
func Formats() []Format {
	return []Format{
		{Name: FormatLongBench, About: "LongBench JSONL, one file or a folder",
			keys: []string{"dataset", "length"}, json: newLongBench},
		{Name: FormatAzure, About: "Azure LLM inference CSV: TIMESTAMP, ContextTokens, GeneratedTokens",
			csv: csvFormat{time: "TIMESTAMP", prompt: "ContextTokens", output: "GeneratedTokens",
				images: "NumImages", zeroFails: true}},
		{Name: FormatMooncake, About: "Mooncake and Qwen-Bailian JSONL: timestamp, input_length, " +
			"output_length, hash_ids; session_id and delay of AIPerf and Dynamo",
			keys: []string{"input_length|input_tokens"}, json: newMooncake, turns: []string{"session_id"}},
		{Name: FormatDynamo, About: "Dynamo request traces, JSONL of schema dynamo.request.trace.v1",
			keys: []string{"event|schema"}, json: newDynamo, turns: []string{anyKey}},
		{Name: FormatServeSim, About: "LLMServingSim JSONL: input_toks, output_toks, arrival_time_ns, " +
			"or sessions of sub_requests", keys: []string{"input_toks|sub_requests"},
			json: newServeSim, turns: []string{"sub_requests"}},
		{Name: FormatMultiTurn, About: "AIPerf multi-turn JSONL: session_id, turns of text and delay",
			keys: []string{"turns"}, json: newMultiTurn, turns: []string{anyKey}},
		{Name: FormatCustom, About: "vLLM's custom JSONL: prompt, output_tokens",
			keys: []string{"prompt", "output_tokens"}, json: newCustom},
		{Name: FormatBurstGPT, About: "BurstGPT CSV: Timestamp, Request tokens, Response tokens",
			csv: csvFormat{
				time: "Timestamp", prompt: "Request tokens", output: "Response tokens", set: "Model",
				session: "Session ID", unit: des.Second, zeroFails: true,
				idle: []string{"Total tokens", "Log Type", "Elapsed time"},
			}},
		{Name: FormatVidur, About: "Vidur CSV: arrived_at, num_prefill_tokens, num_decode_tokens",
			csv: csvFormat{
				time: "arrived_at", prompt: "num_prefill_tokens", output: "num_decode_tokens",
				unit: des.Second, timeOptional: true,
				idle: []string{"num_total_tokens", "pd_ratio"},
			}},
		{Name: FormatShareGPT, About: "ShareGPT JSON: conversations of from and value, or messages of " +
			"role and content", keys: []string{"conversations|messages"}, talks: true},
		{Name: FormatServeGen, About: "ServeGen CSV: timestamp, input_tokens, output_tokens",
			csv: csvFormat{time: "timestamp", prompt: "input_tokens", output: "output_tokens",
				unit: des.Second, idle: []string{"request_id"}}},
		{Name: FormatSplitwise, About: "splitwise-sim CSV: arrival_timestamp, prompt_size, token_size",
			csv: csvFormat{time: "arrival_timestamp", prompt: "prompt_size", output: "token_size",
				unit: des.Second, idle: []string{"request_id", "request_type", "application_id",
					"batch_size"}}},
		{Name: FormatCSV, About: "this project's own CSV, as trace convert writes it", csv: ownCSV},
	}
}

var ownCSV = csvFormat{
	time: "arrived_s", alsoTime: "arrival_s", prompt: "prompt_tokens", output: "output_tokens",
	set: "set", session: "session", content: "content", unit: des.Second, timeOptional: true,
	// further columns of results and records
	idle: []string{"id", "trace_prompt_tokens", "scheduled_s", "first_token_s", "last_token_s",
		"preemptions", "rejected", "recall_proxy", "accuracy_proxy", "hit_tokens", "hit_dram_tokens",
		"hit_ssd_tokens", "replica", "retries", "ttft_s", "tpot_s", "e2e_s"},
}

// FormatNames returns the names of the formats.
func FormatNames() []string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return names
}
