// Package sourcemap reads source maps: it finds the place in a source from which a place in
// generated code comes. It writes none, and reads no files.
//
// Lines and columns count from 0, and columns count UTF-16 units, as in the format
// (ECMA-426).
package sourcemap
