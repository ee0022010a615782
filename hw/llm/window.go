package llm

// Window is sliding-window attention: some layers attend only to the newest tokens and keep only
// their KV.
type Window struct {
	// WindowTokens is the number of newest tokens that a window layer attends to; 0: no such layer.
	WindowTokens int `toml:"window" json:",omitempty" range:">= 0, <= 1073741824"`
	// WindowPattern has one letter per layer, repeated over all layers: w for a window, f for full
	// attention, such as wwwwwf.
	WindowPattern string `toml:"window_pattern" json:",omitempty" with:"window"`
}

// IsWindowed reports whether any layer has a window.
func (m *Model) IsWindowed() bool { return m.WindowTokens > 0 }

// HasWindow reports whether a layer attends to the newest tokens only.
func (w *Window) HasWindow(layer int) bool {
	return w.WindowTokens > 0 && w.WindowPattern[layer%len(w.WindowPattern)] == 'w'
}

// WindowLayers returns the number of layers with a window.
func (m *Model) WindowLayers() (n int) {
	for layer := 0; m.IsWindowed() && layer < m.Layers; layer++ {
		if m.HasWindow(layer) {
			n++
		}
	}
	return n
}

// BoundTokens returns the most tokens that a decode attends to in bounded layers: an indexer's
// selection, or a window; 0: no layer is bounded.
func (m *Model) BoundTokens() int {
	if m.IsIndexed() {
		return m.IndexTopK
	}
	return m.WindowTokens
}
