package memory

import (
	"flag"
	"os"
	"testing"
)

// TestMain has properties draw 1,000 cases, 200 of them under -short, unless RAPID_CHECKS or the
// flag says otherwise: a case takes microseconds, and rare ones matter.
func TestMain(m *testing.M) {
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", "1000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
