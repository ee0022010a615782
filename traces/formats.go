package traces

import (
	"errors"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/sim/des"
	"github.com/sparseserve/sparseserve/traces/rows"
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

// A Format is one format of trace files: where a record, a row of a table or a JSON object, has the
// fields of a request. Of alternatives, a|b, the first with a value counts. A format lacks the
// fields that are empty here. Further fields of a file are ignored, with a warning.
type Format struct {
	Name, About string

	needs string // fields of every record, separated by commas, which tell the format
	json  bool   // JSON only
	only  string // field=value of requests; other records are none
	// an example of a record without a request
	without string

	time           string   // of arrival; a file may be without
	unit           des.Time // of numbers of it; times may be calendar times, too
	prompt, output string   // tokens
	set            string
	content        string // describes the prompt, read by more
	images         string // or audio and video, their number, or field=value of a request with one
	idle           string // further fields, which do not change the load
	zeroFails      bool   // requests of 0 tokens, or without a count, were never served
	texts          bool   // prompts are texts, which a tokenizer counts

	session string // name of the request's conversation
	grouped string // fields of a first record by which the file has sessions (grouped.go); * is any
	list    string // list of a session's requests in a record; see lines.decode
	took    string // ms to the end of the answer
	pause   string // fields, separated by +, of the time after the session's request before
	after   string // field of the time after this request until the session's next

	// more makes a function that reads the fields of this format alone; nil: it has none
	more func(o *options) func(rec rows.Record, r *row) error
}

// names lists the names of all fields, in any form.
func (f *Format) names() string {
	return strings.Join([]string{f.needs, f.only, f.time, f.prompt, f.output, f.set, f.content,
		f.images, f.idle, f.session, f.list, f.took, f.pause, f.after}, ",")
}

// missing returns the first needed field that a file lacks, or "".
func (f *Format) missing(from *rows.Reader) string {
	for name := range strings.SplitSeq(f.needs, ",") {
		if !from.Has(name) {
			return name
		}
	}
	return ""
}

// Formats lists the formats in order of detection. To add one, add an entry.
//
//   - LongBench's JSONL files (github.com/THUDM/LongBench; Bai et al., ACL 2024).
//   - Azure LLM inference traces of 2023 and 2024 (github.com/Azure/AzurePublicDataset; Patel et
//     al., Splitwise, ISCA 2024; Stojkovic et al., DynamoLLM, HPCA 2025): calendar times with
//     seven fractional digits in 2023, six and a zone in 2024.
//   - Qwen-Bailian (github.com/alibaba-edu/qwen-bailian-usagetraces-anon), in Mooncake's shape with
//     times in seconds.
//   - Mooncake (github.com/kvcache-ai/Mooncake; Qin et al., FAST 2025), and traces in this shape of
//     AIPerf (ai-dynamo/aiperf, src/aiperf/dataset/loader/models.py) and Dynamo (ai-dynamo/dynamo,
//     lib/data-gen/src/mooncake.rs). input_length is the whole prompt.
//   - Dynamo's request traces (ai-dynamo/dynamo, lib/llm/src/request_trace/types.rs), bare or as
//     the event of a line. Calls of tools are no requests; they are part of the time until the next
//     request.
//   - LLMServingSim (casys-kaist/LLMServingSim, workloads/README.md, in 2024 dataset/*.tsv):
//     requests, or sessions of requests with the time of a tool after each.
//   - AIPerf's conversations (MultiTurn in models.py as above). A turn's prompt is the conversation
//     so far and its own texts.
//   - vLLM's custom dataset (vllm/benchmarks/datasets: CustomDataset).
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
	mooncake := Format{Name: FormatMooncake, About: "Mooncake and Qwen-Bailian JSONL: timestamp, " +
		"input_length, output_length, hash_ids; session_id and delay of AIPerf and Dynamo", json: true,
		needs: "input_length|input_tokens", time: "timestamp|created_time", unit: des.Millisecond,
		prompt: "input_length|input_tokens", output: "output_length|output_tokens",
		content: "hash_ids", images: "type=image", session: "session_id", grouped: "session_id",
		pause: "delay+delay_ms+tool_wait_ms", idle: "turn,request_id", more: readHashIDs}
	bailian := mooncake
	bailian.needs, bailian.unit = "chat_id,"+mooncake.needs, des.Second
	bailian.idle, bailian.more = "turn,request_id,parent_chat_id", readChats
	return []Format{
		{Name: FormatLongBench, About: "LongBench JSONL, one file or a folder", json: true,
			needs: "dataset,length", set: "dataset", texts: true, more: readLongBench,
			idle: "input,context,answers,language,all_classes,_id"},
		{Name: FormatAzure, About: "Azure LLM inference CSV: TIMESTAMP, ContextTokens, GeneratedTokens",
			needs: "TIMESTAMP,ContextTokens,GeneratedTokens", time: "TIMESTAMP", prompt: "ContextTokens",
			output: "GeneratedTokens", images: "NumImages", zeroFails: true},
		bailian,
		mooncake,
		{Name: FormatDynamo, About: "Dynamo request traces, JSONL of schema dynamo.request.trace.v1",
			json: true, needs: "event|schema", only: "event.event_type|event_type=request_end",
			without: "a call of a tool",
			time:    "event.request.request_received_ms|request.request_received_ms",
			unit:    des.Millisecond, took: "event.request.total_time_ms|request.total_time_ms",
			prompt: "event.request.input_tokens|request.input_tokens|" +
				"event.request.replay.input_length|request.replay.input_length",
			output:  "event.request.output_tokens|request.output_tokens",
			session: "event.agent_context.session_id|agent_context.session_id", grouped: "*",
			idle:    "timestamp,event_time_unix_ms,event_source,tool",
			content: "event.request.replay|request.replay", zeroFails: true, more: readReplay},
		{Name: FormatServeSim, About: "LLMServingSim JSONL or TSV: input_toks, output_toks, " +
			"arrival_time_ns, or sessions of sub_requests", needs: "input_toks|sub_requests",
			time: "arrival_time_ns", unit: 1, prompt: "input_toks", output: "output_toks",
			session: "session_id", grouped: "sub_requests", list: "sub_requests",
			after: "tool_duration_ns", content: "input_tok_ids", idle: "output_tok_ids",
			more: readTokenIDs},
		{Name: FormatMultiTurn, About: "AIPerf multi-turn JSONL: session_id, turns of text and delay",
			json: true, needs: "turns", session: "session_id", grouped: "*", list: "turns",
			time: "timestamp", unit: des.Millisecond, pause: "delay",
			images: "image|images|audio|audios|video|videos",
			idle:   "type,role,text,texts,output_length", texts: true, more: readTurns},
		{Name: FormatCustom, About: "vLLM's custom JSONL: prompt, output_tokens",
			needs: "prompt,output_tokens", output: "output_tokens", content: "prompt", texts: true,
			images: "image_files|multi_modal_data",
			more:   readPrompt},
		{Name: FormatBurstGPT, About: "BurstGPT CSV: Timestamp, Request tokens, Response tokens",
			needs: "Timestamp,Request tokens,Response tokens", time: "Timestamp", unit: des.Second,
			prompt: "Request tokens", output: "Response tokens", set: "Model", session: "Session ID",
			zeroFails: true, idle: "Total tokens,Log Type,Elapsed time"},
		{Name: FormatVidur, About: "Vidur CSV: arrived_at, num_prefill_tokens, num_decode_tokens",
			needs: "num_prefill_tokens,num_decode_tokens", time: "arrived_at", unit: des.Second,
			prompt: "num_prefill_tokens", output: "num_decode_tokens", idle: "num_total_tokens,pd_ratio"},
		{Name: FormatShareGPT, About: "ShareGPT JSON: conversations of from and value, or messages of " +
			"role and content", json: true, needs: "conversations|messages", grouped: "*",
			list: "conversations|messages", without: "a question without an answer", images: "images",
			texts: true, idle: "id,from,role,value,content", more: readMessages},
		{Name: FormatServeGen, About: "ServeGen CSV: timestamp, input_tokens, output_tokens",
			needs: "timestamp,input_tokens,output_tokens", time: "timestamp", unit: des.Second,
			prompt: "input_tokens", output: "output_tokens", idle: "request_id"},
		{Name: FormatSplitwise, About: "splitwise-sim CSV: arrival_timestamp, prompt_size, token_size",
			needs: "arrival_timestamp,prompt_size,token_size", time: "arrival_timestamp",
			unit: des.Second, prompt: "prompt_size", output: "token_size",
			idle: "request_id,request_type,application_id,batch_size"},
		{Name: FormatCSV, About: "this project's own CSV, as trace convert writes it",
			needs: "prompt_tokens,output_tokens", time: "arrived_s|arrival_s", unit: des.Second,
			prompt: "prompt_tokens", output: "output_tokens", set: "set", session: "session",
			content: "content", more: readPieces,
			// further columns of results and records
			idle: "id,trace_prompt_tokens,scheduled_s,first_token_s,last_token_s,preemptions,rejected," +
				"recall_proxy,accuracy_proxy,hit_tokens,hit_dram_tokens,hit_ssd_tokens,replica,retries," +
				"ttft_s,tpot_s,e2e_s"},
	}
}

// FormatNames returns the names of the formats.
func FormatNames() (names []string) {
	for _, f := range Formats() {
		if !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}

// formatOf returns the format of the given name. Without a name it returns the first format whose
// fields the first record has.
func formatOf(name string, from *rows.Reader) (f Format, err error) {
	var known []string
	what := "column"
	if from.JSON() {
		what = "key"
	}
	for _, f := range Formats() {
		switch {
		case f.json && !from.JSON():
			if name == f.Name {
				return f, errors.New("is a table, but format " + name + " is JSON")
			}
		case (name == "" || name == f.Name) && f.missing(from) == "":
			return f, nil
		default:
			known = append(known, strings.NewReplacer("|", " or ", ",", ", ").Replace(f.needs)+
				" ("+f.Name+")")
		}
	}
	for _, f := range slices.Backward(Formats()) {
		if f.Name == name {
			return f, errors.New("has no " + what + " " + f.missing(from) + " of format " + name)
		}
	}
	return f, errors.New("rename the " + what + "s to arrived_s,prompt_tokens,output_tokens, or to " +
		"those of another format: " + strings.Join(known, "; or "))
}
