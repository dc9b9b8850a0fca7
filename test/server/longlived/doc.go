// Package longlived tests the parts of a server that outlive a request: processes, contexts, and the
// events of runs. Guests flood their output, fork and ignore signals, and clients vanish.
package longlived
