package zygote

import _ "embed"

// Source is the C source of the object that lets Node fork. It needs nothing but a
// C library and is meant to be linked as a shared object.
//
//go:embed src/zygote.c
var Source string

// Path is where an image holds the compiled object.
const Path = "/usr/libexec/gaol/zygote.so"
