package answers_test

import (
	"fmt"
	"strings"

	"github.com/sparseserve/sparseserve/internal/answers"
)

// What a result folder holds becomes one document for all media.
func ExampleRead() {
	d, err := answers.Read("testdata/purchase")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Title)

	_, err = answers.Read("testdata")
	what, _, _ := strings.Cut(err.Error(), " of ")
	fmt.Println(what)
	// Output:
	// purchase: what to buy
	// testdata: no finished results
}
