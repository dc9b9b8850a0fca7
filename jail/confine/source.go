package confine

import _ "embed"

// Source is C source to include in a translation unit after _GNU_SOURCE is defined. All
// its functions are static, and the unit must use each of them.
//
//go:embed src/confine.c
var Source string
