package run

// ModelVersion names the model: what a configuration gives when it is simulated. Results are kept
// and used again while it stays the same, whatever is rewritten. Raise it when a change gives other
// results; TestModelVersion then fails and asks for it.
const ModelVersion = "3"

// LiveVersion names how live runs are made: the model, and the kernels and the loop that serve on a
// GPU. Raise it when a change makes live runs faster or slower, or has them do other work.
const LiveVersion = ModelVersion + "-live-1"
