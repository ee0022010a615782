package hw

import "strings"

// Window is sliding-window attention: some layers attend only to the newest tokens and keep only
// their KV.
type Window struct {
	// WindowTokens is the number of newest tokens that a window layer attends to; 0: no such layer.
	WindowTokens int `toml:"window,omitempty" json:",omitempty"`
	// WindowPattern has one letter per layer, repeated over all layers: w for a window, f for full
	// attention, such as wwwwwf.
	WindowPattern string `toml:"window_pattern,omitempty" json:",omitempty"`
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

func (m *Model) validateWindow() error {
	switch p := m.WindowPattern; {
	case m.WindowTokens < 0 || m.WindowTokens > 1<<30:
		return wrong("window", "want 0 to %d tokens, got %d", 1<<30, m.WindowTokens)
	case m.WindowTokens == 0 && p != "":
		return wrong("window_pattern", "means something with window above 0 only, got %q", p)
	case m.WindowTokens > 0 && (strings.Trim(p, "wf") != "" || !strings.Contains(p, "w") ||
		len(p) > m.Layers):
		return wrong("window_pattern", "want a letter w (window) or f (whole context) a layer, %d at "+
			"most, with a w, such as \"wf\", got %q", m.Layers, p)
	case m.WindowTokens > 0 && m.IsLatent():
		return wrong("window", "want 0 with kv_lora_rank, got %d", m.WindowTokens)
	}
	return nil
}
