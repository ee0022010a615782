//go:build !lawcheck

package run

// slow says that runs check every law after every event.
const slow = false
