//go:build !amd64

package kv

func pause() {}
