package cli

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sparseserve/sparseserve/experiments/run"
	"github.com/sparseserve/sparseserve/experiments/testkit"
)

// tutorialPages is where the tutorial is, from the root of the repository.
const tutorialPages = "docs/tutorial"

var tutorialPicture = regexp.MustCompile(`!\[[^]]+\]\((\w+)-(\w+)\.png\)`)

// TestTutorial follows the tutorial in its order and in one folder. Each line of a text block is a
// line of the last command's output, and each picture is the one that it drew. With -update it
// renews both.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates for half a minute")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, tutorialPages, "*.md"))
	if err != nil || len(pages) < 6 {
		t.Fatalf("tutorial: %v (%v)", pages, err)
	}
	t.Chdir(t.TempDir())
	for _, folder := range []string{"examples", "traces"} {
		if err := os.Symlink(filepath.Join(root, folder), folder); err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown, renewed := "", string(text)
		for _, block := range fence.FindAllStringSubmatch(string(text), -1) {
			switch kind, body := block[1], block[2]; kind {
			case "toml":
				name, _, _ := strings.Cut(strings.TrimPrefix(body, "# "), "\n")
				writeFile(t, name, body)
			case "sh":
				shown = followed(t, page, body)
			case "text":
				for line := range strings.Lines(body) {
					switch now := sameRow(shown, line); {
					case strings.Contains(shown, "\n"+line):
					case *testkit.Update && now != "":
						renewed = strings.Replace(renewed, "\n"+line, "\n"+now, 1)
					default:
						t.Errorf("%s: its command does not print %s", filepath.Base(page), line)
					}
				}
			}
		}
		if renewed != string(text) {
			testkit.Rewrite(t, page, renewed)
		}
		for _, m := range tutorialPicture.FindAllStringSubmatch(string(text), -1) {
			samePicture(t, filepath.Join("out", m[1], m[2]+".png"),
				filepath.Join(filepath.Dir(page), m[1]+"-"+m[2]+".png"))
		}
	}
}

// sameRow returns the last line that has the first two cells of a table's line; empty: none.
func sameRow(shown, line string) (same string) {
	cells := strings.Split(line, "│")
	for other := range strings.Lines(shown) {
		if now := strings.Split(other, "│"); len(cells) > 3 && len(now) == len(cells) &&
			slices.Equal(now[:3], cells[:3]) {
			same = other
		}
	}
	return same
}

// followed runs the commands of a block and returns the output of the last.
func followed(t *testing.T, page, block string) (shown string) {
	t.Helper()
	for line := range strings.Lines(block) {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if words[0] != "sparseserve" {
			continue
		}
		status, out, errs := runHere(t.Context(), run.NewSimulator().Run, words[1:]...)
		if status != exitOK {
			t.Fatalf("%s: %s: exit status %d\n%s", page, line, status, errs)
		}
		shown = "\n" + out
	}
	return shown
}

// samePicture compares the pixels of a picture that was drawn and one of a page. With -update it
// copies the first.
func samePicture(t *testing.T, drawn, kept string) {
	t.Helper()
	text, err := os.ReadFile(drawn)
	if err != nil {
		t.Fatal(err)
	}
	if *testkit.Update {
		if err := os.WriteFile(kept, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	var pixels [2][]uint8
	for i, file := range [][]byte{text, page} {
		picture, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		plain := image.NewRGBA(picture.Bounds())
		for y := range picture.Bounds().Dy() {
			for x := range picture.Bounds().Dx() {
				plain.Set(x, y, picture.At(x, y))
			}
		}
		pixels[i] = plain.Pix
	}
	if !bytes.Equal(pixels[0], pixels[1]) {
		t.Errorf("%s is not what its command draws; go test ./internal/cli -run Tutorial -update", kept)
	}
}
