package run

// ModelVersion is the version of the simulation's results. Stored results are reused as long as it
// stays the same. Raise it when a change alters results; TestModelVersion then fails and asks for
// it.
const ModelVersion = "13"

// LiveVersion is the version of live runs: the model, the kernels and the serving loop on a GPU.
// Raise it when a change makes live runs faster or slower, or changes their work.
const LiveVersion = "6-live-1"
