package des

// Heap is a binary heap: a queue of items in the order Before.
type Heap[T any] struct {
	Before func(a, b T) bool
	// Moved, if it is not nil, receives the new place of an item, for Fix and Remove. The place is -1
	// when the item leaves.
	Moved func(item T, at int)
	items []T
}

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.items) }

// Top returns the first item. The heap must not be empty.
func (h *Heap[T]) Top() T { return h.items[0] }

// Fill replaces all items. The heap keeps the slice.
func (h *Heap[T]) Fill(items []T) {
	h.items = items
	for i := len(items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// Items returns the items in no order, to be reused by Fill.
func (h *Heap[T]) Items() []T { return h.items }

// Push adds an item.
func (h *Heap[T]) Push(item T) {
	h.items = append(h.items, item)
	h.up(len(h.items) - 1)
}

// Fix restores the order after the item at a place has changed.
func (h *Heap[T]) Fix(at int) {
	if h.up(at) == at {
		h.down(at)
	}
}

// Remove removes the item at a place; the first item is at 0.
func (h *Heap[T]) Remove(at int) {
	gone, n := h.items[at], len(h.items)-1
	h.items[at] = h.items[n]
	clear(h.items[n:]) // what it refers to can be freed
	if h.items = h.items[:n]; at < n {
		h.Fix(at)
	}
	if h.Moved != nil {
		h.Moved(gone, -1)
	}
}

func (h *Heap[T]) up(at int) int {
	item := h.items[at]
	for at > 0 && h.Before(item, h.items[(at-1)/2]) {
		h.set(at, h.items[(at-1)/2])
		at = (at - 1) / 2
	}
	h.set(at, item)
	return at
}

func (h *Heap[T]) down(at int) {
	item := h.items[at]
	for {
		child := 2*at + 1
		if child+1 < len(h.items) && h.Before(h.items[child+1], h.items[child]) {
			child++
		}
		if child >= len(h.items) || !h.Before(h.items[child], item) {
			break
		}
		h.set(at, h.items[child])
		at = child
	}
	h.set(at, item)
}

func (h *Heap[T]) set(at int, item T) {
	if h.items[at] = item; h.Moved != nil {
		h.Moved(item, at)
	}
}
