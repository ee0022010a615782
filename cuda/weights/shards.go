package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/sparseserve/sparseserve/internal/files"
)

const (
	oneFile   = "model.safetensors"
	indexFile = "model.safetensors.index.json"
)

// stored is the place of a tensor of the checkpoint.
type stored struct {
	file *os.File
	at   int64 // byte of the file
	entry
}

func (s *stored) path() string { return s.file.Name() }

// openShards opens the one file or all that the index names, and returns every tensor by its name.
// The files are returned in any case, to be closed.
func openShards(folder string) (files []*os.File, tensors map[string]stored, err error) {
	tensors = map[string]stored{}
	if _, err := os.Stat(filepath.Join(folder, oneFile)); err == nil {
		file, err := openShard(filepath.Join(folder, oneFile), tensors)
		return append(files, file), tensors, err
	}
	index := filepath.Join(folder, indexFile)
	byShard, err := readIndex(index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s: neither %s nor %s; a PyTorch checkpoint (*.bin) is to be "+
			"saved again as safetensors", folder, oneFile, indexFile)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, shard := range byShard {
		found := map[string]stored{}
		file, err := openShard(filepath.Join(folder, shard.file), found)
		files = append(files, file)
		if errors.Is(err, fs.ErrNotExist) {
			return files, nil, fmt.Errorf("%s: shard %s is missing, which has %d tensors, the "+
				"first %s; download it", index, shard.file, len(shard.tensors), shard.tensors[0])
		}
		if err != nil {
			return files, nil, err
		}
		for _, name := range shard.tensors {
			s, ok := found[name]
			if !ok {
				return files, nil, fmt.Errorf("%s: tensor %s should be in %s, which does not have "+
					"it; are both of one download?", index, name, shard.file)
			}
			tensors[name] = s
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
		into[e.name] = stored{file, start + e.begin, e}
	}
	return file, nil
}

type shard struct {
	file    string
	tensors []string
}

// readIndex returns the shards in the order of their names, each with its tensors in the order of
// theirs.
func readIndex(path string) ([]shard, error) {
	data, err := files.ReadText(path)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := files.ParseJSON(path, data, &index); err != nil {
		return nil, err
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%s: weight_map: want the file of each tensor, got none", path)
	}
	names := map[string][]string{}
	for tensor, file := range index.WeightMap {
		if file == "" || !filepath.IsLocal(file) || filepath.Base(file) != file {
			return nil, fmt.Errorf("%s: weight_map: tensor %s: want a file next to the index, got "+
				"%q", path, tensor, file)
		}
		names[file] = append(names[file], tensor)
	}
	var shards []shard
	for _, file := range slices.Sorted(maps.Keys(names)) {
		slices.Sort(names[file])
		shards = append(shards, shard{file, names[file]})
	}
	return shards, nil
}
