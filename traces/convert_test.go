package traces

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sparseserve/sparseserve/internal/files"
)

// Names come back from our own CSV as they were, and none is a formula there.
func TestConvertedNames(t *testing.T) {
	for _, name := range []string{"=1+cmd|x", "+a", "-2+3", "@b", "-3.5", "a|b", "'=1", `"q"`,
		"a\nb", "\r=1", "a\r\nb", `\n`, "=a,b"} {
		if got := readName(files.SafeCell(lineName(name))); got != name {
			t.Errorf("%q is read back as %q", name, got)
		}
	}
	dir := t.TempDir()
	in, out, again := filepath.Join(dir, "in.csv"), filepath.Join(dir, "out.csv"),
		filepath.Join(dir, "again.csv")
	const head = "arrived_s,prompt_tokens,output_tokens,set\n"
	for path, text := range map[string]string{in: head + "0,40,2,=1+cmd|x\n1,40,2,-3.5\n" +
		"2,40,2,\"\"\"a\\nb\"\"\"\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, pair := range [][2]string{{in, out}, {out, again}} {
		if _, _, err := Convert(t.Context(), pair[0], "", pair[1]); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(pair[1])
		want := head + "0.000000000,40,2,'=1+cmd|x\n1.000000000,40,2,-3.5\n" +
			"2.000000000,40,2,\"\"\"a\\nb\"\"\"\n"
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, %v, want %q", pair[1], text, err, want)
		}
	}
}
