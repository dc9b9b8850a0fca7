// Package gvisor tests jails inside gVisor, whose kernel lacks features of Linux: see package jail/kernel.
package gvisor
