// Package hw has machines as files: cards, kernels, engines and drives. Load combines a card, the
// kernels of a library and an engine into one Profile, which package cost prices work with.
//
// Reading order:
//
//   - hw/llm: model shapes and the bytes that follow from them; hw/builtin: files by name or path.
//   - units.go: a figure with its unit and provenance.
//   - card.go, kernels.go, engine.go, drive.go: the kinds of files; profile.go, overhead.go,
//     sparse_rows.go and grid.go: their tables.
//   - machine.go combines them; profile_check.go and walk.go validate, with the tags of fields that
//     internal/tomlfile checks.
//   - derive.go scales kernels to another card, and says how well.
//   - concepts.go: the cost model without a part.
//   - plan.go: what fits on the card.
//   - hw/cost: what work costs, and the time line of a step.
package hw
