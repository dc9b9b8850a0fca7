// Package test drives gaol end to end, as its users do: real jails, real
// programs, friendly and hostile ones. It also holds the repository to its own
// rules: who imports whom, and where documentation stands.
//
//	program_test.go   what programs can do, each a thing that real Node does
//	hostile_test.go   what they try in vain, each within its limits
//	imports_test.go   the floors, and what is not to be imported at all
//
// There is no code here but tests, and nothing imports it. What a package
// promises by itself is tested beside it, not here.
//
// The tests need root: they make jails. They check that nothing is left when
// they end: processes, cgroups, mounts, folders, descriptors.
package test
