package enter

import _ "embed"

// ConfineSource is C source with which a process gives up its rights before its program runs: it sets
// limits, user, no_new_privs, a Landlock ruleset and a system call filter, and drops capabilities. The
// entry program and the children of zygotes share it. A unit includes it after it has defined _GNU_SOURCE.
// All its functions are static, and the unit must use each of them, in an order of its choice: the source does
// not detect a caller that omits a step.
//
//go:embed src/confine.c
var ConfineSource string

//go:embed src/protocol.c
var protocolSource string

//go:embed src/steps.c
var stepsSource string

// Source is the C source of the program, as one translation unit: src/protocol.c reads the
// list, and src/steps.c executes it, with the functions of ConfineSource. It needs only a C
// library and should be linked statically.
var Source = protocolSource + ConfineSource + stepsSource

// Version is the second argument of the program, and VERSION in src/protocol.c. A program
// of another version, from an image that another gaol built, exits with status 125. It must
// change with the protocol and with the numbers of the steps.
const Version = "3"

// Paths in an image of the programs that start a jail.
const (
	Path   = "/usr/libexec/gaol/enter"     // the compiled program, mode 0711, owned by root
	Reaper = "/usr/libexec/gaol/catatonit" // the static pid 1
)
