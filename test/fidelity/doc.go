// Command fidelity runs Node's own tests in gaol and with plain Node, and compares.
//
//	go run ./test/fidelity [-times 3] [-defaults] [-only PATTERN] [-every N]
//
// The tests are those of test/parallel, test/sequential and test/es-module of a Debian
// source package of Node: of the versions that Debian has, the nearest to the image's
// that can be fetched. Plain Node is the image's own program, run on the host as an
// ordinary user. In gaol each test is a program of a runtime made for it:
//
//	exec      NodeRuntime.Run with LauncherExec; a test that asks for flags of Node is a
//	          Command
//	zygote    NodeRuntime.Run with LauncherZygote; such tests are left out
//
// A test counts if it passes with plain Node every time. It passes in gaol if it passes
// there every time, and is not skipped unless plain Node skips it. What differs is printed
// with its class: fails, flaky or skipped. known.go lists the differences that stay.
//
// Permissions are the defaults and localhost. Limits are so high that tests do not meet
// them; with -defaults they are gaol's defaults, and plain Node runs in a cgroup with the
// same limits of memory and processes.
//
// The exit status is 0 if at least 99.9 % of the tests pass in gaol (99.5 % with
// -defaults), beside the known differences.
package main
