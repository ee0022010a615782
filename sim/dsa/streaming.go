package dsa

// Streaming attends to the sinks and the window alone (Xiao et al., StreamingLLM, ICLR 2024):
// no candidate is ever picked.
type Streaming struct{}

// Limit implements Policy: no context has all its candidates picked.
func (Streaming) Limit() int { return 0 }

// AtOnce implements Policy.
func (Streaming) AtOnce(int) int { return 0 }

// Weighs implements Policy.
func (Streaming) Weighs() bool { return false }

// Picker implements Policy.
func (p Streaming) Picker() Picker { return p }

// Pick implements Picker.
func (Streaming) Pick(_ *View, dst []uint16) ([]uint16, int) { return dst[:0], 0 }
