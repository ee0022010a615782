// Command gpubench times the CUDA kernels on GPU 0, with their references in the same run, and
// prints a table. It times, it does not verify: make gpu-bench runs the checks first.
//
// bench.go has memory, timing and rows; each other file is the table of some kernels.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/sparseserve/sparseserve/cuda"
)

type section struct {
	name string
	run  func(*bench)
}

// sections in the order of running: the first measures the references of the others.
var sections = []section{
	{"link", link}, {"load", loads}, {"save", saves}, {"decode", decode}, {"shared", shared},
	{"psa", psa},
	{"select", selection}, {"prefill", prefill}, {"layer", layer}, {"contention", contention},
	{"overlap", overlap}, {"minference", minference},
}

func main() {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	only := flag.String("only", "", "comma-separated sections: "+strings.Join(names, ", "))
	library := flag.String("library", "", "path of libsparseserve.so")
	warm := flag.Bool("warm", false, "keep in the L2 what the sample before left there")
	flag.Parse()
	if err := run(*library, *only, *warm); err != nil {
		fmt.Fprintln(os.Stderr, "gpubench:", err)
		os.Exit(1)
	}
}

func run(path, only string, warm bool) error {
	lib, err := cuda.Open(path)
	if err != nil {
		return err
	}
	defer lib.Close()
	return lib.Do(func(s *cuda.Session) error {
		if err := s.Init(0); err != nil {
			return err
		}
		info, err := s.Device()
		if err != nil {
			return err
		}
		fmt.Printf("%s, %d SMs, %.0f GiB, driver CUDA %s, library CUDA %s\n",
			info.Name, info.SMCount, float64(info.MemoryBytes)/(1<<30),
			version(info.DriverVersion), version(info.ToolkitVersion))
		b := newBench(s, warm)
		for i, section := range sections {
			if only != "" && i > 0 && !strings.Contains(","+only+",", ","+section.name+",") {
				continue
			}
			if err := b.section(section); err != nil {
				return err
			}
		}
		return nil
	})
}

func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
