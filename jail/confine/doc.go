// Package confine holds the C source by which a process gives up its rights before its
// program runs: limits, user, capabilities, no_new_privs, Landlock ruleset, system call
// filter.
//
//	enter.Source  = headers + confine.Source + steps
//	zygote.Source = headers + confine.Source + zygote and child
//
// A process comes into a jail by the entry program of package enter, or as the child of
// a zygote. Both do the same with the same code; they differ in what they do between
// these steps, and in how they report an error.
//
// The source knows no policy, and no order: its callers do. It does not protect against
// a caller that leaves a step out.
package confine
