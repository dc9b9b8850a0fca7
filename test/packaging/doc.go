// Package packaging tests how gaol is installed: make install, and the Debian package in a copy of
// this machine's file system.
package packaging
