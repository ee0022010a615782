package rows

import (
	"strings"
	"testing"
)

// 1_0 is no way to write 10 in data.
func TestNumbersAreDecimal(t *testing.T) {
	for _, text := range []string{"1_0", "0x10", "0X1p4"} {
		if _, err := Tokens("k", text, 1); err == nil || !strings.Contains(err.Error(), "whole") {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := Time("k", text, 1); err == nil {
			t.Errorf("%s as a time is taken", text)
		}
	}
}
