package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// Create opens an output file that the user named. CloseAtomicallyReplace makes it appear whole;
// otherwise it does not appear. Paths that CheckOutput refuses are errors.
func Create(path string, kept ...string) (*renameio.PendingFile, error) {
	if err := CheckOutput(path, kept...); err != nil {
		return nil, err
	}
	if to, err := filepath.EvalSymlinks(path); err == nil { // a link stays, its file is replaced
		path = to
	}
	return renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
}

// Write writes an output file that the user named, atomically.
func Write(path string, text []byte, kept ...string) error {
	f, err := Create(path, kept...)
	if err != nil {
		return err
	}
	defer f.Cleanup()
	if _, err := f.Write(text); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// CheckOutput refuses an output path that is not a regular file, or that is protected: a file that
// the command reads, under any name, or a place in a folder that it reads or keeps results in.
func CheckOutput(path string, kept ...string) error {
	there, err := os.Stat(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if _, e := os.Lstat(path); isNew && e == nil {
		return fmt.Errorf("%s: a link that leads to no file; remove it, or choose another name", path)
	}
	if err != nil && !isNew {
		return err
	}
	if !isNew && !there.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file; choose another name", path)
	}
	for _, stream := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if info, err := stream.Stat(); err == nil && !isNew && os.SameFile(info, there) {
			return fmt.Errorf("%s: is open as %s; choose another name", path, stream.Name())
		}
	}
	for _, root := range kept {
		to, err := filepath.EvalSymlinks(root)
		if err != nil || root == "" {
			continue // a name of something built in
		}
		if other := within(path, there, to); other != "" {
			return fmt.Errorf("%s: the command reads or keeps %s, and this would replace or add to it; "+
				"choose another name", path, other)
		}
	}
	return nil
}

// resultEndings are the endings of files that commands write into a result folder. resultFolders
// are the subfolders that they own and remove.
var (
	resultEndings = []string{".csv", ".json", ".png", ".svg", ".pdf", ".html", ".txt", "config.toml",
		"question.toml"}
	resultFolders = []string{"runs", "live", "simulated", "steps", "results"}
)

// CheckFolder refuses a result folder that contains an input of the command which results might
// replace. Inputs that are not files are names of built-in data.
func CheckFolder(dir string, inputs ...string) error {
	root := realPath(dir)
	for _, input := range inputs {
		info, err := os.Stat(input)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		folder := realPath(filepath.Dir(input)) // a link itself may be replaced
		rel, err := filepath.Rel(root, filepath.Join(folder, filepath.Base(input)))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		first, _, below := strings.Cut(filepath.ToSlash(rel), "/")
		if below && slices.Contains(resultFolders, first) || !below &&
			slices.ContainsFunc(resultEndings, func(e string) bool { return strings.HasSuffix(rel, e) }) {
			return fmt.Errorf("%s: holds %s, which the command reads and results may replace; choose "+
				"another folder", dir, input)
		}
	}
	return nil
}

// within returns root if path is root or below it, or the file below root that is the same file
// under another name.
func within(path string, there os.FileInfo, root string) (found string) {
	for dir, last := realPath(path), ""; dir != last; dir, last = filepath.Dir(dir), dir {
		if sameFile(dir, root) {
			return root
		}
	}
	if there == nil {
		return ""
	}
	filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if info, e := os.Stat(file); err == nil && e == nil && os.SameFile(info, there) {
			found = file
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// realPath returns an absolute path without links. The path need not exist.
func realPath(path string) string {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(dir, filepath.Base(path))
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	y, e := os.Stat(b)
	return err == nil && e == nil && os.SameFile(x, y)
}

// mostResult is the maximum unpacked size of a file that ReadResult reads, in bytes.
const mostResult = 1 << 30

// OpenResult opens a file that a command made, also inside the archive of its run: for
// RUNS/HASH/NAME without such a folder it opens HASH/NAME in RUNS/HASH.zip or RUNS/packed.zip. It
// refuses files that are not regular.
func OpenResult(path string) (io.ReadCloser, error) {
	f, err := OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return openMember(path, err)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// HasResult reports whether OpenResult would find a file.
func HasResult(path string) bool {
	f, err := OpenResult(path)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

// ReadResult reads a file that a command made, and unpacks it if it is packed.
func ReadResult(path string) ([]byte, error) {
	f, err := OpenResult(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := Unpack(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer text.Close()
	return ReadAll(path, text)
}

// ReadAll reads a stream to its end. Messages use name.
func ReadAll(name string, from io.Reader) ([]byte, error) {
	return readLimited(name, from, mostResult)
}

func readLimited(name string, from io.Reader, most int) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, int64(most)+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("more than %d MiB", most>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// Glob lists the files of a folder whose names match a pattern. The folder's own name is not a
// pattern.
func Glob(dir, pattern string) ([]string, error) {
	names, err := fs.Glob(os.DirFS(dir), pattern)
	for i := range names {
		names[i] = filepath.Join(dir, names[i])
	}
	return names, err
}
