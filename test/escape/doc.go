// Package escape holds attacks on the jail, each named after its target. It runs them
// from a guest as real programs, in C where Node cannot make the system call.
//
//	TestEscape...   a guest reaches for the host, for another sandbox, or for more rights
//	survey          everything that a guest can see, compared with the expected view
//	leftovers       processes that try to outlive their run
//
// Where an attack could fail for another reason than the enforcement, the test first shows
// that the attack works where it is allowed, or on the host. Attacks on the setup of a jail,
// and those with an enforcement switched off, are in package jail.
//
// Attacks that exhaust resources of the whole machine are in test/exhaust.
package escape
