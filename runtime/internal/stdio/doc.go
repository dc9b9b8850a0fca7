// Package stdio moves what a run reads and writes between its pipes, or its terminal, and
// the host.
//
//	Pumped:       io.Reader ──> pipe ──> run ──> pipe ── Pump ──> Sink: Capture, Follow, Lines
//	Interactive:  caller    ──> pipe or terminal ──> run ──> pipe or terminal ──> caller
//
// Follow passes the output on as events of a Feed, whose consumer applies backpressure: a
// slow consumer blocks the run, and the host holds two buffers of each output at most. Once
// the run has ended nothing waits for a consumer. What the kernel still holds then is
// bounded, and is read at once.
package stdio
