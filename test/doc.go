// Package test checks the rules of this repository: which packages import which, where
// package documentation is, and that SECURITY.md names tests that exist.
//
// Its subfolders test gaol end to end, as its users do: real jails, real programs, friendly
// and hostile ones. The contract of a single package is tested beside it, not here.
//
//	harness       shared code of the tests
//	tier          marks of tests that make test leaves out
//	escape        attacks on the jail
//	permissions   enforcement of policies by the kernel
//	exhaust       kernel memory and limits that all sandboxes share
//	run           programs: limits, streams, processes, pools
//	evaluate      snippets, contexts, host functions, values
//	host          files, commands and connections that the host shares with guests
//	zygote        forked runs
//	lifecycle     hosts that are killed or lack resources; the isolations
//	tools         runtime/sandboxtools and runtime/snippets
//	cli           the command line, and its installation
//	network       what guests reach by the rules of the network
//	server        the server: its API, its operation, its users
//	playground    the page of the playground, in a browser
//	docs          the code blocks of the documentation
//	testdata      programs in C that several packages and package jail attack with
//	vm            runs a part of the tests on Debian's kernel, in an emulated machine
//	fidelity      compares Node's own tests in jails with plain Node
//	packages      compares programs that use npm packages with plain Node
//
// The tests need root, because they make jails. They fail if processes, cgroups, mounts,
// files or descriptors are left when they end. `make soak` runs those that package tier marks,
// and repeats the tests of sandboxes with the other launcher.
package test
