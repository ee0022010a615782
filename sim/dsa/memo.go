package dsa

import "sync"

// memo keeps values by key. Safe for concurrent use.
type memo[K comparable, V any] struct {
	mu   sync.RWMutex
	kept map[K]V
}

// get returns the value of a key. It calls make with the stored value, or the zero value, if none
// is stored or suffices rejects it. A nil suffices accepts every value.
func (m *memo[K, V]) get(k K, suffices func(V) bool, make func(had V) V) V {
	m.mu.RLock()
	v, ok := m.kept[k]
	m.mu.RUnlock()
	if ok && (suffices == nil || suffices(v)) {
		return v
	}
	made := make(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok = m.kept[k]; ok && (suffices == nil || suffices(v)) {
		return v // another goroutine made it at the same time
	}
	if m.kept == nil {
		m.kept = map[K]V{}
	}
	m.kept[k] = made
	return made
}
