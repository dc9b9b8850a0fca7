package enter

import (
	_ "embed"

	"gaol/jail/confine"
)

//go:embed src/wire.c
var wireSource string

//go:embed src/steps.c
var stepsSource string

//go:embed src/main.c
var mainSource string

// Source is the C source of the program: src/wire.c, which reads the list,
// confine.Source and src/steps.c, which can do each step, and src/main.c, which does the
// list. They are one translation unit. It needs nothing but a C library and is meant to be linked
// statically.
var Source = wireSource + confine.Source + stepsSource + mainSource

// Version is the second argument of the program, which ends with status 125 if it is of
// another version: the image was made by another gaol. It changes with what src/wire.c
// draws and with the numbers of the steps, and is VERSION there.
const Version = "2"

// Where an image holds what starts a jail.
const (
	Path   = "/usr/libexec/gaol/enter"     // the compiled program, mode 0711, owned by root
	Reaper = "/usr/libexec/gaol/catatonit" // the static pid 1
)
