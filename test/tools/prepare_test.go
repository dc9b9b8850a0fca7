package tools

import (
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
	made, err := box.Init(t.Context(), sandboxtools.InitArgs{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := box.Init(t.Context(), sandboxtools.InitArgs{}); sandboxtools.CodeOf(err) != sandboxtools.Internal || released.Load() != 1 {
		t.Errorf("a sandbox that cannot be created: %v, %d released", err, released.Load())
	}
	if _, err := box.Init(t.Context(), sandboxtools.InitArgs{}); sandboxtools.CodeOf(err) != sandboxtools.Limit || !errors.Is(err, refused) {
		t.Errorf("refused: %v", err)
	}
	if _, err := box.Destroy(t.Context(), sandboxtools.DestroyArgs{ContainerID: made.ContainerID}); err != nil || released.Load() != 2 {
		t.Errorf("destroy: %v, %d released", err, released.Load())
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
}
