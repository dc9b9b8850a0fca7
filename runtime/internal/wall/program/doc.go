// Package program starts the programs of second walls, such as runsc and QEMU, in their cgroups.
package program
