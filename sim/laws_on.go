//go:build lawcheck

package sim

// checkLaws runs Server.Check after every event.
const checkLaws = true
