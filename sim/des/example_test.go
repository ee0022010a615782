package des_test

import (
	"fmt"

	"github.com/sparseserve/sparseserve/sim/des"
)

// Events at one time come by priority, then in the order in which they were scheduled.
func ExampleQueue() {
	var q des.Queue[string]
	q.Schedule(2*des.Second, 0, "step done")
	q.Schedule(des.Second, 1, "request arrives")
	q.Schedule(des.Second, 0, "save done")
	for {
		event, ok := q.Next()
		if !ok {
			break
		}
		fmt.Println(q.Now(), event)
	}
	// Output:
	// 1s save done
	// 1s request arrives
	// 2s step done
}
