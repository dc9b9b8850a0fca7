package session

import (
	"context"
	"testing"
	"time"

	"gaol/runtime/client"
	"gaol/test/harness"
	"gaol/test/server/servertest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// dial connects a client to a server as root.
func dial(t testing.TB, s *servertest.Server) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Options{Socket: s.Socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestClient runs tests of the client on one server.
func TestClient(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for name, test := range map[string]func(*testing.T, *client.Client){
		"functions":             testFunctions,
		"strict function":       testStrictFunction,
		"async functions":       testAsyncFunctions,
		"commands":              testCommands,
		"functions of snippets": testFunctionsOfSnippets,
		"many calls":            testManyCalls,
		"call is canceled":      testCallIsCanceled,
		"reentrant function":    testReentrantFunction,
		"function limits":       testFunctionLimits,
		"process":               testProcess,
		"process signals":       testProcessSignals,
		"terminal":              testTerminal,
		"unread output":         testUnreadOutput,
		"spawn fails":           testSpawnFails,
		"context":               testContext,
		"context exits":         testContextExits,
		"forged output":         testForgedOutput,
		"large output":          testLargeOutput,
		"large input":           testLargeInput,
		"input fails":           testInputFails,
		"cancel":                testCancel,
		"denials":               testDenials,
		"break":                 testBreak,
		"evaluate":              testEvaluate,
		"files":                 testFiles,
		"file errors":           testFileErrors,
		"tar":                   testTar,
		"snapshots":             testSnapshots,
		"slow reader":           testSlowReader,
		"slow writer":           testSlowWriter,
		"listeners":             testListeners,
		"dial":                  testDial,
		"dial ends":             testDialEnds,
		"dial flood":            testDialFlood,
		"dial HTTP":             testDialHTTP,
		"usage":                 testUsage,
		"isolation":             testIsolation,
		"snippets":              testSnippets,
		"snippet errors":        testSnippetErrors,
		"snippet is canceled":   testSnippetIsCanceled,
	} {
		t.Run(name, func(t *testing.T) { test(t, dial(t, s)) })
	}
}

// createIn creates a sandbox that ends with its client.
func createIn(t testing.TB, c *client.Client, o client.CreateOptions) *client.Sandbox {
	t.Helper()
	sb, err := c.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// soon returns a context that ends only for a test that hangs.
func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
