package traces

// azureCSV is the Azure LLM inference trace of 2023 and 2024
// (github.com/Azure/AzurePublicDataset; Patel et al., Splitwise, ISCA 2024;
// Stojkovic et al., DynamoLLM, HPCA 2025). Times are calendar times with seven
// digits of fraction in 2023, and six and a zone in 2024. A request of 0 tokens
// was never served.
func azureCSV() csvFormat {
	return csvFormat{time: "TIMESTAMP", prompt: "ContextTokens", output: "GeneratedTokens", zeroFails: true}
}
