// Package drive measures an SSD and writes what it found as a file of hw/drives.
//
// Measure (probe.go) writes a file on the drive and reads it at random with so many reads waiting
// at once (load.go), past the page cache (direct_linux.go); every block says where it belongs, and
// each read is checked. Describe (describe.go) makes a drive of it.
package drive
