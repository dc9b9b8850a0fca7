package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"gaol/cmd/gaol/server/daemon"
	"gaol/test/harness"
)

// modeVar makes this binary a server or a client; optionsVar holds the server's options, and storeVar
// its store.
const (
	modeVar    = "GAOL_TEST_SERVER_MODE"
	optionsVar = "GAOL_TEST_SERVER_OPTIONS"
	storeVar   = "GAOL_TEST_SERVER_STORE"
)

func TestMain(m *testing.M) {
	switch os.Getenv(modeVar) {
	case "serve":
		serve()
	case "get":
		os.Exit(getAsUser())
	}
	if os.Getenv(serverVar) != "" {
		serveInherited()
	}
	base := harness.Parent
	harness.Parent = tenantCgroup(base) // where the harness looks for what servers leave
	code := harness.RunTests(m)
	harness.Parent = base
	harness.RemoveParent()
	os.Exit(code)
}

// tenantCgroup is the cgroup of root's sandboxes on a server with the parent cgroup base.
func tenantCgroup(base string) string { return base + "/uid-0" }

// serve runs a server until a signal ends it.
func serve() {
	var o daemon.Options
	if err := json.Unmarshal([]byte(os.Getenv(optionsVar)), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv("LISTEN_FDS") != "" { // systemd knows the number before it executes the server
		_ = os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
	}
	o.Server.Log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Server.Store = os.Getenv(storeVar)
	o.Server.CgroupParent = filepath.Dir(harness.Parent)
	o.Check = func(context.Context, []string) error { return nil }
	if err := daemon.Run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
