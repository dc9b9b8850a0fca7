// Package zygote tests runs that are forked from a running Node: that they see the same
// state as started ones, share nothing with the zygote or each other, and survive when a
// zygote is killed, hangs or is replaced.
//
// Children that fail in the middle of entering their jail are made with a zygote that is
// compiled with faults.
package zygote
