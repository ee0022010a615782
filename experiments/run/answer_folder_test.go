package run

import (
	"errors"
	"testing"
)

func TestAnswersOfOtherQuestionsStay(t *testing.T) {
	dir := t.TempDir() + "/plan"
	for _, c := range []struct {
		question string
		replace  bool
		taken    bool
	}{{"a", false, false}, {"a", false, false}, {"b", false, true}, {"b", true, false},
		{"a", false, true}} {
		if err := OpenAnswer(dir, []byte(c.question), c.replace); errors.Is(err, ErrTaken) != c.taken ||
			err != nil && !c.taken {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
