package files_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/sparseserve/sparseserve/internal/files"
)

// A trace is read the same way whether it is packed or not.
func ExampleUnpack() {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("arrived_s,prompt_tokens\n"))
	z.Close()
	for _, from := range []io.Reader{&packed, bytes.NewBufferString("0.5,4096\n")} {
		r, err := files.Unpack(from)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := io.ReadAll(r)
		fmt.Print(string(text))
		if err != nil {
			fmt.Println(err)
		}
		r.Close()
	}
	// Output:
	// arrived_s,prompt_tokens
	// 0.5,4096
}
