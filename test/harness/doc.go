// Package harness is shared by the end-to-end tests: runtimes that are closed with
// their test, programs in them, checks for leaks, and locks between test processes.
//
//	main.go       Main and MainAlone, which every package of tests calls in its TestMain
//	runtimes.go   creates runtimes, pools and evaluations with the options of the tests
//	commands.go   compiles programs in C, and starts and follows programs in jails
//	isolation.go  the isolation of the tests, and features that it lacks
//	images.go     images, snapshots and host folders to mount
//	jails.go      finds this process's jails, runs and zygotes in the cgroups
//	leaks.go      compares what exists before and after a test
//	store.go      finds changes of the images in the store
//	proc.go       reads /proc
//	wait.go       waits for conditions and output, with a limit
//
// Test processes run side by side: go test runs as many packages at the same time as there are
// processors. Each process therefore has its own parent cgroup and temporary folder, and
// the leak checks look only there and at the process itself. State in /run/gaol counts if
// it names the parent cgroup.
//
// Tests that measure the whole machine are in a package that calls MainAlone. It does not
// run while another package of this folder runs. Unit tests of other folders may run.
//
// The time limits here only end tests that hang. They hold on a machine that is several
// times too busy, so no test is faster or more reliable with shorter ones.
package harness
