package weights

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparseserve/sparseserve/internal/files"
)

const (
	oneFile    = "model.safetensors"
	shardFiles = "model-*-of-*.safetensors"
)

// stored is the place of a tensor of the checkpoint.
type stored struct {
	file *os.File
	at   int64 // byte of the file
	entry
}

func (s *stored) path() string { return s.file.Name() }

// openShards opens the one file or all shards, and returns every tensor by its name. The files are
// returned in any case, to be closed.
func openShards(folder string) (files []*os.File, tensors map[string]stored, err error) {
	all, err := os.ReadDir(folder)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, f := range all {
		if f.Name() == oneFile {
			names = []string{oneFile}
			break
		}
		if ok, _ := filepath.Match(shardFiles, f.Name()); ok { // the pattern is well formed
			names = append(names, f.Name())
		}
	}
	if len(names) == 0 {
		return nil, nil, fmt.Errorf("%s: neither %s nor %s; a PyTorch checkpoint (*.bin) is to be "+
			"saved again as safetensors", folder, oneFile, shardFiles)
	}
	tensors = map[string]stored{}
	for _, name := range names {
		file, err := openShard(filepath.Join(folder, name), tensors)
		files = append(files, file)
		if err != nil {
			return files, nil, err
		}
	}
	return files, tensors, nil
}

func openShard(path string, into map[string]stored) (*os.File, error) {
	file, err := files.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return file, err
	}
	entries, start, err := readHeader(file, info.Size())
	if err != nil {
		return file, fmt.Errorf("%s: %w", path, err)
	}
	for _, e := range entries {
		if other, ok := into[e.name]; ok {
			return file, fmt.Errorf("%s: tensor %s is in %s too; are both of one download?", path,
				e.name, other.path())
		}
		into[e.name] = stored{file, start + e.begin, e}
	}
	return file, nil
}
