package quota

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/runtime"
)

// TestDescriptorReserve: before the process has no descriptors left, nothing starts that needs some, for any tenant, and
// requests enter until the last sixteenth.
func TestDescriptorReserve(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 256, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	server, tenant := DefaultLimits(16<<30, 1<<20)
	a := NewServer(server, tenant, nil).Account("token:a")
	var files []*os.File
	t.Cleanup(func() {
		for _, f := range files {
			f.Close()
		}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	needs := map[string]func() (func(), error){
		"sandbox":    func() (func(), error) { return reserve(a, 1) },
		"run":        func() (func(), error) { return a.Admit(t.Context(), 1, 1) },
		"connection": func() (func(), error) { return released(a.Reserve(Limits{Connections: 1})) },
		"session":    func() (func(), error) { return released(a.Reserve(Limits{Sessions: 1})) },
		"connect":    func() (func(), error) { return a.Egress(t.Context(), runtime.NetworkConnect) },
		"look-up":    func() (func(), error) { return a.Egress(t.Context(), runtime.NetworkLookup) },
	}
	for name, take := range needs {
		release, err := take()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		release()
	}
	openTo := func(fd uintptr) {
		for len(files) == 0 || files[len(files)-1].Fd() < fd {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
	}
	openTo(230)
	for name, take := range needs {
		_, err := take()
		e, ok := errors.AsType[*Exceeded](err)
		n, network := errors.AsType[*runtime.NetworkQuotaError](err)
		if ok && (!e.Server || e.RetryAfter == 0) || network && n.Quota != "openFiles" || ok == network {
			t.Errorf("%s: %v", name, err)
		}
	}
	held, err := a.Reserve(Limits{Concurrent: 1, Bodies: 100})
	if err != nil {
		t.Fatal(err)
	}
	held.Release()
	openTo(241)
	if _, err := a.Reserve(Limits{Concurrent: 1, Bodies: 100}); !errors.Is(err, errDescriptors) {
		t.Errorf("a request enters when less than a sixteenth of the descriptors is left: %v", err)
	}
}
