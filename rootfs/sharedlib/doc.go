// Package sharedlib finds the shared libraries that a program needs, by reading ELF files.
//
// It never runs a program: ldd can run the program that it looks at.
//
// [OpenUntrusted] reads the headers of hostile programs. The other functions are for
// programs of the host and of checked packages: package debug/elf reads
// without bounds from a hostile file.
package sharedlib
