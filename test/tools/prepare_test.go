package tools

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
)

// TestPrepare checks that each sandbox is prepared, and released once.
func TestPrepare(t *testing.T) {
	var prepared, released atomic.Int64
	refused := errors.New("no more")
	box, err := sandboxtools.New(sandboxtools.Options{Create: harness.Options(runtime.Options{}), Prepare: func(o *runtime.Options) (func(), error) {
		switch prepared.Add(1) {
		case 2:
			o.Image = "no-such-image"
		case 3:
			return nil, refused
		}
		return func() { released.Add(1) }, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := tools{t, box}
	made := s.call("init", args{})
	if _, err := s.try("init", args{}); sandboxtools.CodeOf(err) != sandboxtools.Internal || released.Load() != 1 {
		t.Errorf("a sandbox that cannot be created: %v, %d released", err, released.Load())
	}
	if _, err := s.try("init", args{}); sandboxtools.CodeOf(err) != sandboxtools.Limit || !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	if s.call("destroy", args{"containerId": made["containerId"]}); released.Load() != 2 {
		t.Errorf("destroy: %d released", released.Load())
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}

// TestStart checks that each command is admitted, and released once, and that a refusal is one of a
// limit.
func TestStart(t *testing.T) {
	var active, started int
	full := errors.New("no room")
	box, err := sandboxtools.New(sandboxtools.Options{Create: harness.Options(runtime.Options{}), Start: func(_ context.Context, l runtime.Limits) (func(), error) {
		if l.Memory <= 0 {
			t.Errorf("limits %+v", l)
		}
		if started == 2 {
			return nil, full
		}
		started++
		active++
		return func() { active-- }, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close() }()
	s := tools{t, box}
	made := s.call("init", args{})
	command := func(name string) error {
		_, err := s.try("command", args{"containerId": made["containerId"], "executable": name})
		return err
	}
	if err := command("true"); err != nil {
		t.Error(err)
	}
	if err := command("no-such-program"); err == nil {
		t.Error("there is no such program")
	}
	if err := command("true"); !errors.Is(err, full) || sandboxtools.CodeOf(err) != sandboxtools.Limit {
		t.Errorf("refused: %v", err)
	}
	if active != 0 || started != 2 {
		t.Errorf("%d active of %d", active, started)
	}
}
