//go:build !lawcheck

package run

// slow reports that runs check every law after every event.
const slow = false
