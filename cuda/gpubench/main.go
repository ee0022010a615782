// Command gpubench times the CUDA kernels on GPU 0 beside their references, in one run, and prints a table. Run the checks first: it times, it
// does not verify (make gpu-bench does both).
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"sparseserve/cuda"
)

type section struct {
	name string
	run  func(*bench) error
}

// sections in the order of running: the first measures what the others are compared with, and streams are to be few before the second.
var sections = []section{
	{"link", link}, {"streams", streams}, {"load", loads}, {"pool", pools}, {"save", saves},
	{"decode", decode}, {"balance", balance}, {"psa", psa}, {"pipeline", psaPipeline}, {"select", selection}, {"digest", digests},
	{"prefill", prefill}, {"paged", pagedPrefill}, {"layer", layer}, {"linear", linears},
	{"contention", contention}, {"spread", spread},
}

func main() {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	only := flag.String("only", "", "comma-separated sections: "+strings.Join(names, ", "))
	library := flag.String("library", "", "path of libsparseserve.so")
	warm := flag.Bool("warm", false, "leave in the L2 what the sample before left there")
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
		fmt.Printf("%s, %d SMs, %.0f GiB, driver CUDA %s, library CUDA %s\n", info.Name, info.SMCount, float64(info.MemoryBytes)/(1<<30), version(info.DriverVersion), version(info.ToolkitVersion))
		b := &bench{Session: s, info: info, warm: warm}
		for _, section := range sections {
			if only != "" && section.name != sections[0].name && !strings.Contains(","+only+",", ","+section.name+",") {
				continue
			}
			fmt.Printf("\n%s\n", section.name)
			if err := section.run(b); err != nil {
				return fmt.Errorf("%s: %w", section.name, err)
			}
			if err := b.freeAll(); err != nil {
				return err
			}
		}
		return nil
	})
}

func version(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }
