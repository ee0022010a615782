package traces

import "github.com/sparseserve/sparseserve/sim/des"

// Formats of trace files.
const (
	FormatLongBench = "longbench"
	FormatAzure     = "azure"
	FormatMooncake  = "mooncake"
	FormatBurstGPT  = "burstgpt"
	FormatVidur     = "vidur"
	FormatCSV       = "csv" // the project's own
)

// csvFormats lists the CSV formats in the order in which they are recognised.
//
//   - Azure LLM inference traces of 2023 and 2024 (github.com/Azure/AzurePublicDataset;
//     Patel et al., Splitwise, ISCA 2024; Stojkovic et al., DynamoLLM, HPCA 2025): calendar
//     times with seven digits of fraction in 2023, six and a zone in 2024. A request of 0
//     tokens was never served.
//   - BurstGPT (github.com/HPMLL/BurstGPT; Wang et al., KDD 2025): the model is the set;
//     0 response tokens mark a request that failed.
//   - Vidur (github.com/microsoft/vidur; Agrawal et al., MLSys 2024): traces of lengths
//     only lack arrived_at.
//   - The project's own, which Convert writes: arrived_s counts from the first request;
//     lengths only lack it.
var csvFormats = []struct {
	name string
	csvFormat
}{
	{FormatAzure, csvFormat{time: "TIMESTAMP", prompt: "ContextTokens", output: "GeneratedTokens", zeroFails: true}},
	{FormatBurstGPT, csvFormat{
		time: "Timestamp", prompt: "Request tokens", output: "Response tokens", set: "Model",
		unit: des.Second, zeroFails: true,
	}},
	{FormatVidur, csvFormat{
		time: "arrived_at", prompt: "num_prefill_tokens", output: "num_decode_tokens",
		unit: des.Second, timeOptional: true,
	}},
	{FormatCSV, ownCSV},
}

var ownCSV = csvFormat{
	time: "arrived_s", prompt: "prompt_tokens", output: "output_tokens", set: "set",
	unit: des.Second, timeOptional: true,
}

func formatNames() []string {
	names := []string{FormatLongBench, FormatMooncake}
	for _, f := range csvFormats {
		names = append(names, f.name)
	}
	return names
}
