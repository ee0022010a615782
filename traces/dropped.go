package traces

import (
	"slices"

	"github.com/sparseserve/sparseserve/internal/warn"
)

// droppedKeys are the keys of a file's first record that no reader takes.
type droppedKeys struct {
	seen  bool
	names []string
}

// of keeps the keys of the first record that are none of those known.
func (d *droppedKeys) of(record []byte, known []string) {
	if !d.seen {
		d.seen = true
		d.add(record, known)
	}
}

func (d *droppedKeys) add(object []byte, known []string) {
	for _, key := range jsonKeys(object) {
		if !slices.Contains(known, key) && !slices.Contains(d.names, key) {
			d.names = append(d.names, key)
		}
	}
}

// warning lists the keys.
func (d *droppedKeys) warning(file string) []warn.Warning {
	return unread("key", slices.Sorted(slices.Values(d.names)), nil, file)
}
