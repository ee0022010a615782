// Package drive measures an SSD and writes what it found as a file of hw/drives.
//
// Measure (probe.go) writes a file on the drive and reads it at random at each queue depth
// (load.go), bypassing the page cache (direct_linux.go). Every page stores its offset, and each
// read is checked. Describe (describe.go) turns the result into a drive.
package drive
