package hostcommand

import _ "embed"

// Source is the C source of the program. It needs no C library, see [Flags].
//
//go:embed src/command.c
var Source string

// Flags are the compiler's flags for Source, which make a small static program. The last one
// keeps the compiler from calling functions of a C library that copy memory.
var Flags = []string{
	"-static", "-nostdlib", "-ffreestanding", "-fno-stack-protector", "-fno-asynchronous-unwind-tables",
	"-Wl,-z,noseparate-code,--build-id=none", "-fno-tree-loop-distribute-patterns",
}

const (
	// Path is where an image has the compiled program.
	Path = "/usr/libexec/gaol/command"

	// Dir is the folder in a jail's tree in which the commands are.
	Dir = "/usr/libexec/gaol/commands"

	// Program is the name of the program in Dir, which is no command: see [CheckName].
	Program = ".command"

	// MaxSize bounds the size of the program, in bytes.
	MaxSize = 64 << 10
)

// Family is the first argument of the socket call by which the program asks for the host. No
// kernel has such a family of addresses.
const Family = 0x67616f6c
