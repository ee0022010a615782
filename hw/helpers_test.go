package hw

import (
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/hw/llm"
)

func mustProfile(t testing.TB, name string) *Profile {
	t.Helper()
	p, err := Load(name, engineOf(name), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// engineOf is the engine that a card's figures were first put together with.
func engineOf(card string) string {
	if card == "h200" {
		return "sparseserve-live"
	}
	return "vllm-0.5"
}

func wantError(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: want an error with %q", name, parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: want %q in: %v", name, p, err)
		}
	}
}

func mustModel(t testing.TB, name string) *llm.Model {
	t.Helper()
	m, err := llm.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return &m
}
