// Package longlived tests what lives longer than a request to a server: processes, contexts, and the
// events of runs. Guests flood their output, fork and ignore signals, and clients vanish.
package longlived
