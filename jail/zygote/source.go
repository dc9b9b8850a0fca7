package zygote

import (
	_ "embed"

	"gaol/jail/enter"
)

//go:embed src/protocol.c
var protocolSource string

//go:embed src/threads.c
var threadsSource string

//go:embed src/zygote.c
var zygoteSource string

//go:embed src/request.c
var requestSource string

//go:embed src/random.c
var randomSource string

//go:embed src/child.c
var childSource string

//go:embed src/addon.c
var addonSource string

// Source is the C source of the object that makes Node forkable, as one translation unit:
// src/protocol.c describes the protocol; src/threads.c records Node's helper threads and
// revives them in a child; src/zygote.c is preloaded into Node and forks; src/request.c
// reads a child's requests; src/random.c renews V8's random generator; src/child.c enters the jail, with enter.ConfineSource; and src/addon.c
// is the interface to JavaScript. It needs only a C library and should be linked as a shared
// object.
var Source = protocolSource + enter.ConfineSource + threadsSource + zygoteSource + requestSource + randomSource + childSource + addonSource

// Path is the path of the compiled object in an image.
const Path = "/usr/libexec/gaol/zygote.so"
