// Package confine holds the C source with which a process gives up its rights before its
// program runs: it sets limits, user, no_new_privs, a Landlock ruleset and a system call
// filter, and drops capabilities.
//
//	enter.Source  = headers + confine.Source + steps
//	zygote.Source = headers + confine.Source + zygote and child
//
// A process enters a jail either by the entry program of package enter or as a child of
// a zygote. Both use this code. They differ in what they do between these steps and in how
// they report an error.
//
// The source defines neither a policy nor an order; its callers do. It does not detect a
// caller that omits a step.
package confine
