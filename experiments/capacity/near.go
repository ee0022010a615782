package capacity

import (
	"context"

	"github.com/sparseserve/sparseserve/experiments/config"
)

// near warns of the effect of a 5 % change of step time on the choice under its load, if the choice
// runs near a limit of its servers.
func (b *buyer) near(ctx context.Context, a *Purchase) error {
	if a.Choice == nil {
		return nil
	}
	results, err := b.made(ctx, b.slotted, []config.Point{*a.point})
	if err != nil {
		return err
	}
	sum := &results[0].Summary
	before := len(sum.Warnings)
	if err := b.Store.Cliff(ctx, b.slotted, a.point, sum); err != nil {
		return err
	}
	a.Warnings = append(a.Warnings, sum.Warnings[before:]...)
	return nil
}
