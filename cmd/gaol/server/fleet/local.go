package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
)

// Local is the engine of a machine without a fleet, which has its batch runs. It is started on first use. A fleet that the machine
// makes later continues them.
type Local struct {
	Dir     string                 // of its files: see [Dir]
	Program func() (string, error) // returns the program nats-server
	Log     *slog.Logger

	mu     sync.Mutex
	client *engine.Client // nil: it was not started
	stop   func()
}

// Engine returns the engine. If no batch run was ever submitted and start is false, it returns nil.
func (l *Local) Engine(ctx context.Context, start bool) (*engine.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		return l.client, nil
	}
	if _, err := os.Stat(filepath.Join(l.Dir, engineDir)); errors.Is(err, fs.ErrNotExist) && !start {
		return nil, nil
	}
	err := l.start(ctx)
	return l.client, err
}

// start starts the engine.
//
// Preconditions: l.mu is held.
func (l *Local) start(ctx context.Context) (err error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Fleet{Options: Options{Dir: l.Dir, Log: l.Log}, stop: func() {}, stopEngine: cancel}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.Program, err = l.Program(); errors.Is(err, fs.ErrNotExist) {
		return service.Refuse(service.EngineUnavailable, "this server has no engine for batch runs: %w", err)
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	if err := f.readState(); err != nil {
		return err
	}
	f.state.EngineToken = cmp.Or(f.state.EngineToken, rand.Text())
	if err := f.writeState(); err != nil {
		return err
	}
	if f.engine, err = f.newEngine(life); err != nil {
		return err
	}
	if f.client, err = engine.Connect(f.dialEngine, f.state.EngineToken, "local", f.Log); err != nil {
		return err
	}
	if err := f.client.Prepare(ctx); err != nil {
		return err
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		f.engine.Watch(life, func(ctx context.Context) error { return f.client.Put(ctx, engine.Config, "canary.local", nil) })
	})
	l.client, l.stop = f.client, func() { f.close(); watching.Wait() }
	return nil
}

// Close ends the engine. Its files stay.
func (l *Local) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil {
		l.stop()
		l.client, l.stop = nil, nil
	}
}
