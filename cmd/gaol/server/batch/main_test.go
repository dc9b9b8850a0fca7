package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"gaol/cmd/gaol/server/api"
	"gaol/cmd/gaol/server/fleet/engine"
	"gaol/cmd/gaol/server/service"
	"gaol/cmd/gaol/server/settings"
	"gaol/cmd/gaol/server/tenant"
	"gaol/internal/strictjson"
	"gaol/runtime"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// program is nats-server.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gaol-batch-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program = os.Getenv("GAOL_TEST_NATS"); program == "" {
		program = filepath.Join(dir, "nats-server")
		build := exec.Command("go", "build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags=-s", "-o", program, "github.com/nats-io/nats-server/v2")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %v\n%s", build.Args, err, out)
			return 1
		}
	}
	code := m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// timeout is of tests that hang.
const timeout = time.Minute

// world is an engine with the machines that use it.
type world struct {
	t      *testing.T
	server *engine.Server
	*machine
}

const token = "the engine's token"

// newWorld starts an engine, and a machine that submits and does not work.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := engine.Start(ctx, engine.Options{Program: program, Dir: t.TempDir(), Token: token, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		<-s.Done()
	})
	w := &world{t: t, server: s}
	w.machine = w.newMachine(t, machineOptions{idle: true})
	if err := w.client.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// machine is a machine with its own connection to the engine.
type machine struct {
	*Runs
	client *engine.Client
	gate   *gate
	calls  chan call
}

// call is a run that a machine makes. The test sends its response.
type call struct {
	context.Context
	tenant, path, code string
	input              []byte
	respond            chan<- any // a value for the body, or an error
}

// gate dials to the engine, unless it is shut.
type gate struct {
	dial func(context.Context) (net.Conn, error)
	mu   sync.Mutex
	shut bool
	open []net.Conn
}

func (g *gate) Dial(ctx context.Context) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return nil, engine.ErrUnavailable
	}
	c, err := g.dial(ctx)
	if err == nil {
		g.open = append(g.open, c)
	}
	return c, err
}

// close closes the gate with its connections, or opens it again.
func (m *machine) cut(t *testing.T, shut bool) {
	t.Helper()
	m.gate.mu.Lock()
	m.gate.shut = shut
	if shut {
		for _, c := range m.gate.open {
			_ = c.Close()
		}
	}
	m.gate.mu.Unlock()
	waitFor(t, fmt.Sprintf("the connection is cut: %v", shut), func() bool { return m.client.Connected() != shut })
}

type machineOptions struct {
	idle     bool // it takes no messages
	settings func(*settings.Settings)
	knows    func(tenant string) bool
}

// newMachine returns a machine that ends with the test.
func (w *world) newMachine(t *testing.T, o machineOptions) *machine {
	t.Helper()
	m := &machine{gate: &gate{dial: w.server.Dial}, calls: make(chan call, 1000)}
	var err error
	if m.client, err = engine.Connect(m.gate.Dial, engine.Access{Secret: token}, "test", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	set, err := settings.Read("", settings.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if o.settings != nil {
		o.settings(set)
	}
	create := func(context.Context, runtime.Options) (*runtime.NodeRuntime, error) {
		return nil, errors.ErrUnsupported
	}
	s := service.New(service.Options{Settings: set, Create: create, CgroupParent: "/gaol-batch-test/tenants"})
	ended, end := context.WithCancel(context.Background())
	serve := func(w http.ResponseWriter, r *http.Request, t *tenant.Tenant) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ended, cancel)()
		m.serve(w, r.WithContext(ctx), t)
	}
	if o.knows == nil {
		o.knows = func(string) bool { return true }
	}
	m.Runs = New(Options{
		Engine:  func(context.Context, bool) (*engine.Client, error) { return m.client, nil },
		Service: s, Serve: serve, Accepts: func() bool { return !o.idle }, Knows: o.knows,
	})
	waitFor(t, "a connection", m.client.Connected)
	t.Cleanup(func() {
		m.Stop()
		end()
		m.Close()
		m.client.Close()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if w.machine != nil {
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// serve sends a call to the test, and responds as the test wants.
func (m *machine) serve(w http.ResponseWriter, r *http.Request, t *tenant.Tenant) {
	c := call{Context: r.Context(), tenant: t.Name, path: r.URL.Path}
	var in struct{ Code, Command string }
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err == nil {
		_ = json.Unmarshal(raw, &in)
	}
	c.code, c.input = in.Code+in.Command, raw
	respond := make(chan any, 1)
	c.respond = respond
	m.calls <- c
	var response any
	select {
	case response = <-respond:
	case <-r.Context().Done():
		response = service.Refuse(service.Stopped, "the server was stopped")
	}
	switch response := response.(type) {
	case error:
		api.ProblemOf(response).Write(w)
	case string:
		_, _ = w.Write([]byte(response))
	default:
		_ = json.NewEncoder(w).Encode(response)
	}
}

// next receives the next call of a machine, which must be of a program.
func (m *machine) next(t *testing.T, code string) call {
	t.Helper()
	c := receive(t, "a call of "+code, m.calls)
	if c.code != code {
		t.Fatalf("a call of %q, want %q", c.code, code)
	}
	return c
}

// exit responds with a result with an exit code.
func (c call) exit(code int) { c.respond <- &runtime.Result{ExitCode: code, Stdout: []byte(c.code)} }

// receive receives from a channel.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(timeout):
		t.Fatalf("no %s after %v", what, timeout)
		panic("unreachable")
	}
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", timeout, what)
		}
	}
}

var ada = &tenant.Tenant{Name: "token:ada"}

func program1(key, code string) *requestjson.SubmitRequest {
	return &requestjson.SubmitRequest{Key: key, Code: code}
}

// submit submits a batch run of ada, whose code is its key.
func (m *machine) submit(t *testing.T, key string) *resultjson.BatchRun {
	t.Helper()
	run, err := m.Submit(t.Context(), ada, program1(key, key))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// wait waits until a batch run of ada is done.
func (m *machine) wait(t *testing.T, key string) (run *resultjson.BatchRun) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err := m.Follow(ctx, ada, key, func(now *resultjson.BatchRun) error {
		run = now
		return nil
	})
	if err != nil || run.State != resultjson.BatchDone || run.Done == nil || (run.Result == nil) == (run.Error == nil) {
		t.Fatalf("%s: %+v, %v", key, run, err)
	}
	return run
}

// wantExit waits until a batch run of ada is done, and checks its exit code.
func (m *machine) wantExit(t *testing.T, key string, code int) *resultjson.BatchRun {
	t.Helper()
	run := m.wait(t, key)
	if run.Error != nil || run.Result.ExitCode != code {
		t.Fatalf("%s: %+v %+v, want exit code %d", key, run.Result, run.Error, code)
	}
	return run
}

// wantCode checks the code of an error.
func wantCode(t *testing.T, what string, err error, code service.Code) {
	t.Helper()
	if e, ok := service.AsError(err); !ok || e.Code != code {
		t.Errorf("%s: %v, want code %s", what, err, code)
	}
}

// metric returns a metric of a machine.
func (m *machine) metric(t *testing.T, name string) int {
	t.Helper()
	w := httptest.NewRecorder()
	m.Service.Metrics().Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// isQueued reports whether a batch run of ada is in its queue.
func (w *world) isQueued(t *testing.T, key string) bool {
	t.Helper()
	_, err := w.client.Queued(t.Context(), queueOf(ada.Name), name(ada.Name, key))
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// shortLease makes the lease of ada's messages as short as healthy workers allow.
func (w *world) shortLease(t *testing.T) {
	t.Helper()
	dial := func(ctx context.Context) (net.Conn, error) { return w.server.Dial(ctx) }
	conn, err := nats.Connect("nats://127.0.0.1:4222", nats.SetCustomDialer(dialer(dial)), nats.UserInfo("gaol", token))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream := fmt.Sprintf("RUNS-%d", queueOf(ada.Name))
	consumer, err := js.Consumer(t.Context(), stream, "workers")
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	config.AckWait = renewEvery + time.Second
	if _, err := js.UpdateConsumer(t.Context(), stream, config); err != nil {
		t.Fatal(err)
	}
}

// dialer implements [nats.CustomDialer].
type dialer func(context.Context) (net.Conn, error)

func (d dialer) Dial(string, string) (net.Conn, error) { return d(context.Background()) }

func tenantNamed(name string) *tenant.Tenant { return &tenant.Tenant{Name: name} }

// encode encodes a result as the API does.
func encode(r runtime.Result) ([]byte, error) { return strictjson.Encode(&r, "") }
