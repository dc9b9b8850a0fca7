package zygote

import (
	_ "embed"

	"gaol/jail/confine"
)

//go:embed src/wire.c
var wireSource string

//go:embed src/threads.c
var threadsSource string

//go:embed src/zygote.c
var zygoteSource string

//go:embed src/request.c
var requestSource string

//go:embed src/child.c
var childSource string

// Source is the C source of the object that lets Node fork: src/wire.c, which draws
// the protocol; src/threads.c, which notes Node's helper threads and revives them in a
// child; src/zygote.c, which Node loads and which forks; src/request.c, which reads a
// child's orders; and src/child.c, which takes it into the jail, with confine.Source. They
// are one translation unit. It needs only a C library and is meant to be linked as a
// shared object.
var Source = wireSource + confine.Source + threadsSource + zygoteSource + requestSource + childSource

// Path is where an image holds the compiled object.
const Path = "/usr/libexec/gaol/zygote.so"
