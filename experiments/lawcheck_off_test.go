//go:build !lawcheck

package experiments

// slow says that runs check every law after every event.
const slow = false
