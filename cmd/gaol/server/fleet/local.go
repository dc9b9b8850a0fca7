package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
)

// Local starts the engine of a machine without a fleet on first use, for batch runs. If the machine makes a fleet later, their engine
// becomes the fleet's.
type Local struct {
	*Fleet                         // without other nodes
	program func() (string, error) // returns nats-server

	mu      sync.Mutex
	started bool
}

// NewLocal returns the engine of a machine. The caller closes it.
func NewLocal(o Options, program func() (string, error)) (*Local, error) {
	f := &Fleet{Options: o, metrics: newMetrics()}
	f.life, f.stopEngine = context.WithCancel(context.Background())
	f.engineLife, f.stop = f.life, f.stopEngine
	return &Local{Fleet: f, program: program}, f.readState()
}

// Engine returns the engine. If no batch run was ever submitted and start is false, it returns nil.
func (l *Local) Engine(ctx context.Context, start bool) (*engine.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := os.Stat(filepath.Join(l.Dir, engineDir)); errors.Is(err, fs.ErrNotExist) && !start {
		return nil, nil
	}
	if !l.started {
		if err := l.start(ctx); err != nil {
			return nil, err
		}
		l.started = true
	}
	return l.client, nil
}

// start starts the engine.
//
// Preconditions: l.mu is held.
func (l *Local) start(ctx context.Context) (err error) {
	if l.Program, err = l.program(); errors.Is(err, fs.ErrNotExist) {
		return service.Refuse(service.EngineUnavailable, "this server has no engine for batch runs: %w", err)
	} else if err != nil {
		return err
	}
	if err := os.MkdirAll(l.Dir, 0o700); err != nil {
		return err
	}
	l.state.EngineToken = cmp.Or(l.state.EngineToken, rand.Text())
	if err := l.writeState(); err != nil {
		return err
	}
	if l.engine.Load() == nil { // else a part of an earlier start failed
		e, err := l.startServer(generation{}, "")
		if err != nil {
			return err
		}
		l.engine.Store(e)
	}
	if l.client == nil {
		if l.client, err = engine.Connect(l.dialEngine, l.access(generation{}), l.state.Machine, l.Log); err != nil {
			return err
		}
		l.useEngine(l.engine.Load())
	}
	return l.client.Prepare(ctx)
}

// Close ends the engine. Its files stay.
func (l *Local) Close() {
	l.stop() // otherwise a start could take half a minute
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close()
	l.work.Wait()
}
