// Package lazyregexp compiles regular expressions on first use. Compiling all of them would take a
// third of the time that a short command needs, and every process of gaol would pay for it: the processes
// that compile code are the same program.
package lazyregexp
