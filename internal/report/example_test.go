package report_test

import (
	"bytes"
	"fmt"

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
	fmt.Println(err)
	// Output:
	// true false
	// testdata: no finished results of simulate, sweep, plan, whatif, compare or calibrate: none of whatif.json, purchase.json, plan.json, compare.json, fits.csv, summary.json is there
}
