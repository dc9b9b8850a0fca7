package confine

import _ "embed"

// Source is C source that belongs into a translation unit after the definition of
// _GNU_SOURCE. All of it is static, and each function has to be used there.
//
//go:embed src/confine.c
var Source string
