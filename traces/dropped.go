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

// warning lists the keys, but for one that is said to be misspelt.
func (d *droppedKeys) warning(file, misspelt string) []warn.Warning {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(d.names)),
		func(name string) bool { return name == misspelt })
	return unread("key", names, nil, file)
}
