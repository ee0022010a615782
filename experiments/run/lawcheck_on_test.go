//go:build lawcheck

package run

// slow reports that runs check every law after every event, some hundred times the work of the run
// itself: tests then take fewer requests.
const slow = true
