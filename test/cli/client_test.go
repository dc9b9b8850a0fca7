package cli

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

// The scripts in testdata/client use a server, as root and as a user who may not.
func TestClientScripts(t *testing.T) {
	bin := filepath.Dir(harness.Gaol(t))
	s := servertest.Start(t, servertest.Options{})
	if err := os.Chmod(s.Socket, 0o660); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/client",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("SERVER", s.Socket)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": status,
			"json":   jsonField,
			"nobody": nobody,
			"sandbox": func(ts *testscript.TestScript, _ bool, _ []string) {
				ts.Setenv("SANDBOX", detached(ts, s.Socket))
			},
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// detached creates a sandbox that the script deletes.
func detached(ts *testscript.TestScript, socket string) (id string) {
	c, err := client.Dial(context.Background(), client.Options{Socket: socket})
	ts.Check(err)
	defer c.Close()
	sb, err := c.Create(context.Background(), client.CreateOptions{Detached: true})
	ts.Check(err)
	return sb.ID()
}
