package hw

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated parts of documents anew")

// The page has how far imported kernels are from points that no fit has seen.
func TestUnseenPoints(t *testing.T) {
	var table strings.Builder
	table.WriteString("| card | engine | kernel | points | held out | within 5 % | within 10 % | " +
		"median error |\n|-|-|-|-:|-:|-:|-:|-:|\n")
	for _, name := range KernelNames() {
		k, err := LoadKernels(name)
		if err != nil {
			t.Fatal(err)
		}
		engine, _, _ := strings.Cut(k.Title, " on an ")
		for _, f := range k.Fits {
			if f.Within10 > 0 {
				fmt.Fprintf(&table, "| %s | %s | %s | %d | %d | %.1f %% | %.1f %% | %.1f %% |\n", k.MeasuredOn,
					engine, f.Model, f.Samples, f.HeldOut, 100*f.Within5, 100*f.Within10, 100*f.MedianError)
			}
		}
	}
	generated(t, "../docs/cost-model.md", "unseen", "UnseenPoints", table.String())
}

// generated holds the part of a page between <!-- NAME --> and <!-- /NAME --> to a text, or writes
// it where tests run with -update.
func generated(t *testing.T, path, name, test, text string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), "<!-- "+name+" -->\n")
	is, after, ends := strings.Cut(rest, "<!-- /"+name+" -->\n")
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no part <!-- %s -->", path, name)
	case is == text:
	case *update:
		whole := before + "<!-- " + name + " -->\n" + text + "<!-- /" + name + " -->\n" + after
		if err := os.WriteFile(path, []byte(whole), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s, part %s is stale: go test ./hw -run %s -update writes it anew", path, name, test)
	}
}
