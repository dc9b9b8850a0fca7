package zygote

import _ "embed"

//go:embed src/zygote.c
var zygoteSource string

//go:embed src/child.c
var childSource string

// Source is the C source of the object that lets Node fork: src/zygote.c, which
// Node loads and which forks, followed by src/child.c, which is the child's way into
// the jail. They are one translation unit. It needs nothing but a C library and is
// meant to be linked as a shared object.
var Source = zygoteSource + childSource

// Path is where an image holds the compiled object.
const Path = "/usr/libexec/gaol/zygote.so"
