package memory

import (
	"testing"
)

// What would have been enough counts the room that an admission asked for, because with less the
// scheduler would not have admitted the request. A question without an admission does not count.
func TestEnoughCountsRoomThatWasFound(t *testing.T) {
	type memory interface {
		Admit(g *Grant, tokens, now int) bool
		Grow(g *Grant, tokens, now int) bool
		Room(g *Grant, tokens int) bool
		Enough() (total int64, ok bool)
	}
	for name, m := range map[string]memory{"budget": NewBudget(100, 16, 0),
		"pool": NewPool(100, 16, 0, nil)} {
		first, second := Grant{Table: &Table{}}, Grant{Table: &Table{}}
		if !m.Admit(&first, 50*16, 50*16) || !m.Room(&second, 40*16) {
			t.Fatalf("%s: no room for 90 of 100 blocks", name)
		}
		if total, _ := m.Enough(); total > 60 {
			t.Errorf("%s: %d blocks would have been enough for 50 and a question", name, total)
		}
		if !m.Grow(&second, 16, 16) {
			t.Fatalf("%s: no room for 51 of 100 blocks", name)
		}
		if total, ok := m.Enough(); !ok || total < 90 || total > 95 {
			t.Errorf("%s: %d blocks would have been enough, %v; want a few more than 90", name, total, ok)
		}
		if m.Room(&second, 60*16) {
			t.Errorf("%s: room for 110 of 100 blocks", name)
		}
		if _, ok := m.Enough(); ok {
			t.Errorf("%s: a refusal is enough", name)
		}
	}
}
