package cli

import (
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// numbered opens the folder of a name or, with more, the first of name, name-2, name-3, .. that
// does not fail for one of the reasons.
func numbered(name string, more bool, open func(out string) error, reasons ...error) error {
	for n, out := 2, name; ; n++ {
		err := open(out)
		if !more || !slices.ContainsFunc(reasons,
			func(reason error) bool { return errors.Is(err, reason) }) {
			return err
		}
		out = fmt.Sprintf("%s-%d", name, n)
	}
}

// settingsName returns the part of a folder name that settings add: -rate=0.3 for
// workload.rate=0.3.
func settingsName(sets []string) string {
	const most = 120 // bytes; longer ones end in a digest
	var b strings.Builder
	for _, set := range sets {
		key, value, _ := strings.Cut(set, "=")
		if strings.HasPrefix(value, string(filepath.Separator)) { // a file is known by its name
			value = filepath.Base(value)
		}
		b.WriteString("-" + config.KeyName(key) + "=" + value)
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
			strings.ContainsRune("-_=+.,", r):
			return r
		case r == '[' || r == ']' || r == '"' || r == ' ':
			return -1
		}
		return '_'
	}, b.String())
	if len(name) > most {
		name = fmt.Sprintf("%s-%08x", name[:most-9], crc32.ChecksumIEEE([]byte(name)))
	}
	return name
}
