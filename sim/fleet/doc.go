// Package fleet runs replicas of a server in one virtual time. fleet.go routes requests to them by
// a Router (router.go), which reads their load. failure.go stops and restarts replicas.
package fleet
