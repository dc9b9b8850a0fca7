package repl

import (
	"bytes"
	"context"
	"io"
	"sync"
)

const ctrlC = 0x03

// keyboard buffers the keys that the user presses. It reads before its reader asks, so
// that Ctrl-C is noticed while a cell runs.
type keyboard struct {
	ctx context.Context

	mu          sync.Mutex
	changed     sync.Cond
	pending     []byte
	err         error  // why there will be no more keys
	onInterrupt func() // called for Ctrl-C; nil: Ctrl-C is a key like others
	interrupted bool   // the last key that Read returned is Ctrl-C
}

// maxPending bounds the buffer. Like a terminal's own line discipline, keyboard drops
// further input.
const maxPending = 1 << 20

func newKeyboard(ctx context.Context, from io.Reader) *keyboard {
	k := &keyboard{ctx: ctx}
	k.changed.L = &k.mu
	context.AfterFunc(ctx, func() { k.close(context.Cause(ctx)) })
	go k.readAll(from) // not waited for: a Read may block forever
	return k
}

func (k *keyboard) readAll(from io.Reader) {
	for buf := make([]byte, 4096); ; {
		n, err := from.Read(buf)
		k.buffer(buf[:n])
		if err != nil {
			k.close(err)
			return
		}
	}
}

// buffer keeps keys for Read. While a cell runs, Ctrl-C interrupts it and discards the
// keys before it, as a terminal's line discipline does.
func (k *keyboard) buffer(b []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.onInterrupt != nil {
		if at := bytes.LastIndexByte(b, ctrlC); at >= 0 {
			k.onInterrupt()
			k.pending, b = nil, b[at+1:]
		}
	}
	if len(k.pending)+len(b) <= maxPending {
		k.pending = append(k.pending, b...)
	}
	k.changed.Broadcast()
}

// close makes Read return err when no keys are left. The first error counts.
func (k *keyboard) close(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	k.changed.Broadcast()
}

// Read returns buffered keys up to the first Ctrl-C, or waits for some.
func (k *keyboard) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for len(k.pending) == 0 && k.err == nil {
		k.changed.Wait()
	}
	if k.ctx.Err() != nil || len(k.pending) == 0 {
		return 0, k.err
	}
	next := k.pending
	if at := bytes.IndexByte(next, ctrlC); at >= 0 {
		next = next[:at+1]
	}
	n := copy(b, next)
	k.interrupted = n > 0 && b[n-1] == ctrlC
	k.pending = k.pending[n:]
	return n, nil
}

// wasInterrupted reports whether the last key that Read returned is Ctrl-C.
func (k *keyboard) wasInterrupted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.interrupted
}

// setInterrupt makes Ctrl-C call f instead of being a key. Nil undoes that.
func (k *keyboard) setInterrupt(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.onInterrupt = f
}
