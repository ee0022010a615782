//go:build !lawcheck

package sim

// checkLaws runs Server.Check after every event; see the build tag lawcheck.
const checkLaws = false
