package cli

import (
	"fmt"
	"io"

	"github.com/sparseserve/sparseserve/sim"
)

// printLive says what the host of each live run did in addition to the steps' work.
func printLive(w io.Writer, sums []sim.Summary) {
	for i := range sums {
		s, l := &sums[i], sums[i].Live
		if l == nil {
			continue
		}
		if l.RowsSelected > 0 {
			fmt.Fprintf(w, "%s, rows of a layer: %d selected by decodes, %d of them loaded from the host, "+
				"%d saved; %s s of memory growing\n", s.Name, l.RowsSelected, l.RowsLoaded, l.RowsSaved,
				digits(l.GrowingS))
			continue
		}
		where := "of it"
		if l.RoundTrips == 0 { // the GPU waits for none of it
			where = "of its time, overlapped"
		}
		fmt.Fprintf(w, "%s, host: bookkeeping %s ms a step (%s %% %s: lookup %s s, lists %s s), "+
			"planning %s s, %s round trips a step (%s s waited), %s uploads of %s KiB and %s calls a "+
			"layer, save buffer %s s waited, %s s of memory growing\n",
			s.Name, digits(l.BookkeepingMSPerStep), digits(100*l.BookkeepingShare), where, digits(l.LookupS),
			digits(l.ListsS), digits(l.PlanningS),
			digits(l.RoundTripsPerStep), digits(l.RoundTripS), digits(l.UploadsPerLayer),
			digits(l.UploadKiBPerLayer), digits(l.CallsPerLayer), digits(l.SaveWaitS), digits(l.GrowingS))
	}
}
