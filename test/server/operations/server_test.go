package operations

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/cmd/gaol/server/daemon"
	"gaol/test/harness"
)

// hangTime ends tests that hang.
const hangTime = 60 * time.Second

// process is a server in a separate process, which ends with the test.
type process struct {
	*exec.Cmd
	t      testing.TB
	socket string
	log    *serverLog
	ended  chan struct{} // closed when it has exited
}

// serverLog is a server's log. Lines can be awaited.
type serverLog struct {
	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced with each line
}

// start starts a server and returns when it has logged that it serves. Prepare may change the command.
func start(t testing.TB, o daemon.Options, prepare ...func(*exec.Cmd)) *process {
	t.Helper()
	p := startOnly(t, o, prepare...)
	p.waitLog("msg", "serve")
	return p
}

// startOnly is start, but does not wait.
func startOnly(t testing.TB, o daemon.Options, prepare ...func(*exec.Cmd)) *process {
	t.Helper()
	if o.Socket == "" {
		o.Socket = filepath.Join(t.TempDir(), "s")
	}
	o.Group = "gaol"
	text, err := json.Marshal(withoutFunctions(o))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), modeVar+"=serve", optionsVar+"="+string(text), storeVar+"="+cmp.Or(o.Server.Store, os.Getenv(harness.StoreVar)), harness.ParentVar+"="+harness.Parent)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	for _, change := range prepare {
		change(cmd)
	}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, t, o.Socket, &serverLog{more: make(chan struct{})}, make(chan struct{})}
	go func() {
		defer close(p.ended)
		p.log.read(stderr)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // does nothing if it has exited
		<-p.ended
		if t.Failed() {
			t.Logf("the server's log:\n%s", strings.Join(p.log.lines, "\n"))
		}
	})
	return p
}

// withoutFunctions are the options that can be passed to another process.
func withoutFunctions(o daemon.Options) map[string]any {
	return map[string]any{
		"Config": o.Config, "Tokens": o.Tokens, "Cert": o.Cert, "Key": o.Key, "Socket": o.Socket, "Group": o.Group,
		"Listen": o.Listen, "Insecure": o.Insecure, "IdleEvery": o.IdleEvery,
	}
}

func (l *serverLog) read(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		l.mu.Lock()
		l.lines = append(l.lines, s.Text())
		close(l.more)
		l.more = make(chan struct{})
		l.mu.Unlock()
	}
}

// waitLog waits for a line of the log with a value in a field, and returns it. Each line is
// returned once.
func (p *process) waitLog(field, value string) (line map[string]any) {
	p.t.Helper()
	late := time.After(hangTime)
	for {
		p.log.mu.Lock()
		for i, text := range p.log.lines {
			fields := map[string]any{}
			if json.Unmarshal([]byte(text), &fields) == nil && fields[field] == value && fields["seen"] == nil {
				p.log.lines[i] = strings.TrimSuffix(text, "}") + `,"seen":true}`
				p.log.mu.Unlock()
				return fields
			}
		}
		more := p.log.more
		p.log.mu.Unlock()
		select {
		case <-more:
		case <-p.ended:
			p.t.Fatalf("the server has exited (%v) without %s=%s", p.ProcessState, field, value)
		case <-late:
			p.t.Fatalf("no %s=%s in the log", field, value)
		}
	}
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit status, -1 for a process that a signal has killed.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(hangTime):
		p.t.Fatal("the server does not end")
		return 0
	}
}

// stop stops the server in an orderly way.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Errorf("the server exits with %d", code)
	}
}

// client returns an HTTP client for the socket.
func (p *process) client() *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", p.socket)
	}}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: hangTime}
}

// answer is a response.
type answer struct {
	status int
	text   string
	err    error
}

// request sends a request with a body of JSON, or without a body.
func request(c *http.Client, method, url, token string, body any) answer {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return answer{err: err}
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequest(method, url, content)
	if err != nil {
		return answer{err: err}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := c.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, string(text), err}
}

// expect sends a request by the socket, and ends the test unless the status is the expected one.
func (p *process) expect(status int, method, path string, body any) string {
	p.t.Helper()
	a := request(p.client(), method, "http://gaol"+path, "", body)
	if a.err != nil || a.status != status {
		p.t.Fatalf("%s %s: %d %s %v, want %d", method, path, a.status, a.text, a.err, status)
	}
	return a.text
}

// createSandbox returns the id of a new sandbox.
func (p *process) createSandbox() string {
	p.t.Helper()
	var created struct{ ID string }
	text := p.expect(http.StatusCreated, "POST", "/v1/sandboxes", map[string]any{})
	if err := json.Unmarshal([]byte(text), &created); err != nil || created.ID == "" {
		p.t.Fatalf("%s: %v", text, err)
	}
	return created.ID
}

// startRun starts a program in a sandbox that ends with SIGUSR2, and returns when it runs.
func (p *process) startRun(sandbox string) (pid int, result <-chan answer) {
	p.t.Helper()
	before := handlers()
	ended := make(chan answer, 1)
	client := p.client()
	go func() {
		ended <- request(client, "POST", "http://gaol/v1/sandboxes/"+sandbox+"/run", "", map[string]any{
			"code": `process.on('SIGUSR2', () => { console.log('signaled'); process.exit(3); }); setInterval(() => {}, 1e6)`,
		})
	}()
	harness.WaitFor(p.t, "the program handles SIGUSR2", func() bool {
		for _, id := range handlers() {
			if !slices.Contains(before, id) {
				pid = id
			}
		}
		return pid != 0
	})
	return pid, ended
}

// handlers returns the processes in jails that handle SIGUSR2. The process of a run may be older
// than the run, but handles nothing before.
func handlers() (pids []int) {
	for _, id := range harness.ProcessesIn(harness.JailCgroups()) {
		var caught uint64
		_, _ = fmt.Sscanf(harness.ProcessStatus(id)["SigCgt"], "%x", &caught)
		if pid, err := strconv.Atoi(id); err == nil && caught&(1<<(unix.SIGUSR2-1)) != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// writeFile writes a file for the server.
func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
