package main

import (
	"bytes"
	"context"
	"io"
	"sync"
)

const ctrlC = 0x03

// keys are what a person presses. They are taken in at once, so that Ctrl-C is seen
// while nobody reads.
type keys struct {
	ctx context.Context

	mu      sync.Mutex
	more    sync.Cond
	pressed []byte
	err     error  // there will be no more
	stop    func() // what Ctrl-C does; nil: it is a key like others
	stopped bool   // the last that Read returned was Ctrl-C
}

// mostPressed bounds what nobody has read yet. What a person types beyond it is lost, as
// a terminal's own line discipline has it.
const mostPressed = 1 << 20

func newKeys(ctx context.Context, from io.Reader) *keys {
	k := &keys{ctx: ctx}
	k.more.L = &k.mu
	context.AfterFunc(ctx, func() { k.end(context.Cause(ctx)) })
	go k.take(from) // not waited for: no key may be pressed any more
	return k
}

func (k *keys) take(from io.Reader) {
	for buf := make([]byte, 4096); ; {
		n, err := from.Read(buf)
		k.press(buf[:n])
		if err != nil {
			k.end(err)
			return
		}
	}
}

func (k *keys) press(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stop != nil {
		if at := bytes.LastIndexByte(b, ctrlC); at >= 0 { // what was typed before it is abandoned, too
			k.stop()
			k.pressed, b = nil, b[at+1:]
		}
	}
	if len(k.pressed)+len(b) <= mostPressed {
		k.pressed = append(k.pressed, b...)
	}
	k.more.Broadcast()
}

func (k *keys) end(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	k.more.Broadcast()
}

// Read returns what was pressed, to the first Ctrl-C.
func (k *keys) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.pressed) == 0 && k.err == nil {
		k.more.Wait()
	}
	if k.ctx.Err() != nil || len(k.pressed) == 0 {
		return 0, k.err
	}
	next := k.pressed
	at := bytes.IndexByte(next, ctrlC)
	if at >= 0 {
		next = next[:at+1]
	}
	n := copy(b, next)
	k.stopped = at >= 0 && n == at+1
	k.pressed = k.pressed[n:]
	return n, nil
}

// interrupted reports whether the last key that was read is Ctrl-C.
func (k *keys) interrupted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stopped
}

// onInterrupt has Ctrl-C call a function, until the returned one is called.
func (k *keys) onInterrupt(f func()) (over func()) {
	set := func(f func()) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.stop = f
	}
	set(f)
	return func() { set(nil) }
}
