//go:build lawcheck

package sim

// checkLaws runs Server.check after every event.
const checkLaws = true
