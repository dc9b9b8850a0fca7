// Command embed is a program in a module of its own that uses gaol as a library.
package main
