// Package llm describes the shapes of language models and the bytes that follow from them.
//
// Reading order:
//
//   - model.go: Model, with the features in latent.go, mixture.go, window.go and mtp.go; matrix.go:
//     its weight matrices; shard.go: its part on one of several GPUs.
//   - library.go: catalogue.csv, and models that users name.
//   - config_json.go: the config.json of a checkpoint, by the tables config_keys.csv and
//     config_types.csv; config_features.go: what is refused; config_layers.go: lists of layers;
//     config_context.go: the context; config_quant.go: formats of weights.
package llm
