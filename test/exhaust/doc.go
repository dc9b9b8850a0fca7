// Package exhaust tests that a guest cannot make the kernel hold more than the limits of
// its run, and cannot use up what all sandboxes share.
//
// Some kernel memory is charged to no cgroup, so the tests measure the machine as a whole.
// They do not run beside other packages of end-to-end tests. `make attack` measures longer
// and prints a table.
package exhaust
