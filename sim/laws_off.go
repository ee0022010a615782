//go:build !lawcheck

package sim

// checkLaws runs Server.check after every event; see the build tag lawcheck.
const checkLaws = false
