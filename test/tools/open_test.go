package tools

import (
	"context"
	"errors"
	"testing"

	"gaol/runtime"
	"gaol/runtime/sandboxtools"
	"gaol/test/harness"
)

var errFull = errors.New("no room")

// opened is a sandbox that is counted, and refuses the program false.
type opened struct {
	*runtime.NodeRuntime
	closed *int
}

func (o opened) Command(ctx context.Context, name string, args []string, run runtime.RunOptions) (*runtime.Result, error) {
	if name == "false" {
		return nil, &sandboxtools.Error{Code: sandboxtools.Limit, Err: errFull}
	}
	return o.NodeRuntime.Command(ctx, name, args, run)
}

func (o opened) Close() error {
	*o.closed++
	return o.NodeRuntime.Close()
}

// TestOpen checks that Options.Open creates each sandbox, that each is closed once, and that its errors keep their
// codes.
func TestOpen(t *testing.T) {
	var begun, closed int
	box, err := sandboxtools.New(sandboxtools.Options{Create: harness.Options(runtime.Options{}), Open: func(ctx context.Context, o runtime.Options) (sandboxtools.Sandbox, error) {
		switch begun++; begun {
		case 2:
			o.Image = "no-such-image"
		case 3:
			return nil, &sandboxtools.Error{Code: sandboxtools.Limit, Err: errFull}
		}
		rt, err := runtime.Create(ctx, o)
		return opened{rt, &closed}, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := tools{t, box}
	made := s.call("init", args{})
	if _, err := s.try("init", args{}); sandboxtools.CodeOf(err) != sandboxtools.Internal {
		t.Errorf("a sandbox that cannot be created: %v", err)
	}
	if _, err := s.try("init", args{}); sandboxtools.CodeOf(err) != sandboxtools.Limit || !errors.Is(err, errFull) {
		t.Errorf("refused: %v", err)
	}
	command := func(name string) error {
		_, err := s.try("command", args{"containerId": made["containerId"], "executable": name})
		return err
	}
	if err := command("true"); err != nil {
		t.Error(err)
	}
	if err := command("false"); !errors.Is(err, errFull) || sandboxtools.CodeOf(err) != sandboxtools.Limit {
		t.Errorf("refused: %v", err)
	}
	if s.call("destroy", args{"containerId": made["containerId"]}); closed != 1 {
		t.Errorf("destroy: %d closed", closed)
	}
	if err := box.Close(); err != nil || closed != 1 || begun != 3 {
		t.Error(err, closed, begun)
	}
}
