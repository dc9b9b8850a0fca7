package service

import goruntime "runtime"

// closing bounds how many sandboxes are closed at once. Closing one waits for the kernel to end its
// processes, with a time limit: a thousand at once, for example at the end of the server, would exceed it.
type closing chan struct{}

func newClosing() closing { return make(closing, 2*goruntime.NumCPU()) }

// do calls one when it is its turn.
func (c closing) do(one func() error) error {
	c <- struct{}{}
	defer func() { <-c }()
	return one()
}
