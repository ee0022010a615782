package report_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/report"
)

// A report is one page with all that it shows: nothing is fetched.
func ExampleMake() {
	page, err := report.Make("testdata/purchase")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(bytes.HasPrefix(page, []byte("<!doctype html>")),
		bytes.Contains(page, []byte("<script src")))

	_, err = report.Make("testdata")
	what, _, _ := strings.Cut(err.Error(), " of ")
	fmt.Println(what)
	// Output:
	// true false
	// testdata: no finished results
}
