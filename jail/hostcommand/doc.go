// Package hostcommand contains the C program behind the commands that the host adds to a jail, and
// the host's half of its protocol. Each command is a hard link to that program in [Dir].
//
//	guest: get-weather --json {...}              host
//	socket(Family, _, 3) ── seccomp listener ──> which file does the caller execute?
//	  <── descriptors of two pipes ───────────── Open
//	arguments ── pipe ─────────────────────────> Arguments
//	          <───────────────────────── pipe ── Input, if the command reads its input
//	input ...                                    the function runs
//	          <───────────────────────── pipe ── Reply: output, errors, exit status
//
// The program asks by a system call that no kernel implements. The host's listener of the
// run's filter replies with pipes, as package notify describes. So there is no socket that
// the guest could connect elsewhere, bind or inspect, and nothing to find in the file tree;
// the network's permissions do not matter; and the host knows the run, because each run has a
// separate listener. The host asks the kernel which file the caller executes, so a guest that may
// not execute a command can't call it either.
//
// It is written in C, without a C library, because each call starts it: it has some 3 kB, and
// a call takes 1 ms in a shell's loop where a shell takes 5 ms to start, and Node 150 ms.
//
// Frames from the guest are u32 n | n bytes: the arguments, each ended by NUL, and then, if
// the host asks for input, its parts, of which an empty one is the last. Frames from the host
// are u8 kind | u32 n, and n bytes for output: see src/command.c. Integers are big-endian.
//
// The guest's half is hostile: any process of a run can execute the program, trace it, and
// write to its pipes.
package hostcommand
