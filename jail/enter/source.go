package enter

import (
	_ "embed"

	"gaol/jail/confine"
)

//go:embed src/protocol.c
var protocolSource string

//go:embed src/steps.c
var stepsSource string

// Source is the C source of the program, as one translation unit: src/protocol.c reads the
// list, and src/steps.c executes it, with the functions of confine.Source. It needs only a C
// library and should be linked statically.
var Source = protocolSource + confine.Source + stepsSource

// Version is the second argument of the program, and VERSION in src/protocol.c. A program
// of another version, from an image that another gaol built, exits with status 125. It must
// change with the protocol and with the numbers of the steps.
const Version = "3"

// Paths in an image of the programs that start a jail.
const (
	Path   = "/usr/libexec/gaol/enter"     // the compiled program, mode 0711, owned by root
	Reaper = "/usr/libexec/gaol/catatonit" // the static pid 1
)
