package zygote

import (
	_ "embed"

	"gaol/jail/confine"
)

//go:embed src/wire.c
var wireSource string

//go:embed src/zygote.c
var zygoteSource string

//go:embed src/request.c
var requestSource string

//go:embed src/child.c
var childSource string

// Source is the C source of the object that lets Node fork: src/wire.c, which draws
// what is said, src/zygote.c, which Node loads and which forks, src/request.c, which
// reads what a child is told, and src/child.c, which is its way into the jail, with
// confine.Source. They are one translation unit. It needs nothing but a C library and is meant to be linked as a
// shared object.
var Source = wireSource + confine.Source + zygoteSource + requestSource + childSource

// Path is where an image holds the compiled object.
const Path = "/usr/libexec/gaol/zygote.so"
