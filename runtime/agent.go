package runtime

import (
	"context"
	"fmt"
	"net"
	"os"

	"gaol/runtime/internal/agent"
	"gaol/runtime/internal/sandbox"
	"gaol/runtime/internal/sandbox/native"
	"gaol/runtime/internal/sandbox/remote"
	"gaol/runtime/internal/wall/child"
	"gaol/runtime/internal/wall/gvisor"
	"gaol/runtime/internal/wall/vm"
)

// ServeAgent serves one sandbox on a connection until that ends. It is for programs that gaol starts on the machine of an isolation.
func ServeAgent(conn net.Conn) error { return agent.Serve(conn, native.New) }

// BootAgent is ServeAgent for the first process of a virtual machine, on the connection to its host. The machine ends with it: it
// returns only if that fails.
func BootAgent() error {
	conn, err := vm.Boot()
	if err == nil {
		err = ServeAgent(conn)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // the console
	}
	return vm.Stop()
}

// newSandbox makes a sandbox.
func (i Isolation) newSandbox(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	switch i {
	case IsolationGVisor:
		return gvisor.New(ctx, spec)
	case IsolationMicroVM:
		return vm.New(ctx, spec)
	case IsolationRemote:
	default:
		return native.New(ctx, spec)
	}
	m, err := child.Start()
	if err != nil {
		return nil, err
	}
	return remote.New(ctx, m, spec)
}
