package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Tenants of the tests. Their tokens have other names, so that no other server uses the same cgroups.
const (
	ada = "ada"
	bob = "bob"
)

// cluster is a fleet with its files.
type cluster struct {
	t       *testing.T // with which the nodes end
	dir     string
	tokens  string            // file
	names   map[string]string // of tokens, by tenant
	secrets map[string]string // by tenant
	nodes   []*node           // that are new: see start
	traces  string            // URL of a collector; empty: there is none
}

var clusters atomic.Int64

// newCluster makes the files of a fleet.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir(), names: map[string]string{}, secrets: map[string]string{}}
	c.tokens = filepath.Join(c.dir, "tokens")
	number := clusters.Add(1)
	for _, tenant := range []string{ada, bob} {
		c.names[tenant] = fmt.Sprintf("%s-%d-%d", tenant, os.Getpid(), number)
		out, err := exec.Command(harness.Gaol(t), "token", "create", c.names[tenant], "--tokens", c.tokens).Output()
		if err != nil {
			t.Fatal(err)
		}
		c.secrets[tenant] = strings.TrimSpace(string(out))
	}
	settings := `{"drainMs": 500, "previewHost": "` + previewHost + `", "mounts": {"base": "` + c.mounts() + `", "nodeModules": true}, "hostPorts": ["` +
		strconv.Itoa(hostPort) + `"], "server": {"requestsPerSec": 100000}, "tenant": {"requestsPerSec": 100000, "images": 10, "imageBytes": 1000000000}}`
	if err := errors.Join(os.MkdirAll(filepath.Join(c.mounts(), "d"), 0o755), os.WriteFile(c.config(), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.removeCgroups)
	return c
}

// previewHost is the domain of previews, and hostPort a port of the machine that sandboxes may name.
const (
	previewHost = "preview.test"
	hostPort    = 3000
)

func (c *cluster) config() string { return filepath.Join(c.dir, "config") }

// mounts is the folder whose subfolders sandboxes may mount.
func (c *cluster) mounts() string { return filepath.Join(c.dir, "mounts") }

// startCluster starts a fleet with a number of nodes.
func startCluster(t *testing.T, nodes int) *cluster {
	t.Helper()
	return newCluster(t).startAll(t, nodes)
}

// startAll starts the nodes of a fleet. The first one runs the engine.
func (c *cluster) startAll(t *testing.T, nodes int) *cluster {
	t.Helper()
	first := c.start(t, "a", "--fleet")
	for i := range nodes - 1 {
		c.start(t, string(rune('b'+i)), first.join(first.token(t))...)
	}
	for _, viewer := range c.nodes {
		for _, n := range c.nodes {
			viewer.waitState(t, n.id, "live")
		}
	}
	return c
}

// node is a server. It can be started several times.
type node struct {
	c       *cluster
	name    string
	gaol    string // path of the program
	store   string
	socket  string
	space   *space   // of its network; nil: that of the tests
	ids     []string // of all its starts
	id      string
	peers   string // address for other nodes
	address string // of TCP for clients

	*exec.Cmd
	log   *serverLog
	ended chan struct{}
}

// start starts a new node with flags, and waits until it serves.
func (c *cluster) start(t *testing.T, name string, flags ...string) *node {
	t.Helper()
	n := c.prepare(t, name)
	n.start(t, append([]string{"--fleet-address", "127.0.0.1:0"}, flags...)...)
	c.nodes = append(c.nodes, n)
	return n
}

// prepare makes the files of a node.
func (c *cluster) prepare(t *testing.T, name string) *node {
	t.Helper()
	harness.NATS(t)
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	n := &node{c: c, name: name, store: filepath.Join(dir, "store"), socket: filepath.Join(dir, "s"), address: "127.0.0.1:0"}
	n.gaol = harness.Gaol(t)
	harness.LinkDefaultImage(t, n.store)
	return n
}

// base are the arguments of a server without TCP and without a fleet.
func (n *node) base() []string {
	return []string{"serve", "--log-format", "json", "--socket", n.socket, "--store", n.store, "--config", n.c.config()}
}

// command returns the command that starts the node with flags.
func (n *node) command(flags ...string) *exec.Cmd {
	return n.gaolCommand(slices.Concat(n.base(), []string{"--listen", n.address, "--tokens", n.c.tokens, "--insecure"}, flags))
}

// gaolCommand returns a command of gaol that ends with this process.
func (n *node) gaolCommand(args []string) *exec.Cmd {
	cmd := n.space.command(n.gaol, args...)
	if n.c.traces != "" {
		cmd.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+n.c.traces, "OTEL_SERVICE_NAME="+n.name)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	return cmd
}

// start starts the node and waits until it serves.
func (n *node) start(t *testing.T, flags ...string) {
	t.Helper()
	n.run(t, n.command(flags...))
	n.waitServing(t)
}

// run starts the node, and ends it with the fleet.
func (n *node) run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	release := killWithTests(t, cmd.Process.Pid)
	log, ended := &serverLog{}, make(chan struct{})
	n.Cmd, n.log, n.ended = cmd, log, ended
	go func() {
		defer close(ended)
		log.read(stderr)
		release()
		_ = cmd.Wait()
	}()
	n.c.t.Cleanup(func() {
		n.kill(n.c.t)
		if n.c.t.Failed() {
			n.c.t.Logf("the log of node %s:\n%s", n.name, log)
		}
	})
}

// waitServing waits until the node serves clients and other nodes, and notes its id and addresses.
func (n *node) waitServing(t *testing.T) {
	t.Helper()
	joined := n.waitLog(t, "node of a fleet")
	n.id, n.peers = joined["node"], joined["address"]
	n.ids = append(n.ids, n.id)
	n.waitAddress(t)
}

// waitAddress waits until the node serves clients on TCP, and notes its address.
func (n *node) waitAddress(t *testing.T) {
	t.Helper()
	harness.WaitFor(t, "node "+n.name+" serves TCP", func() bool {
		n.failIfEnded(t)
		for _, line := range n.log.with("serve") {
			if address := line["address"]; strings.HasPrefix(address, "127.0.0.1:") {
				n.address = address
				return true
			}
		}
		return false
	})
}

// killWithTests kills a process when this one ends, even by a signal, unless release is called before the process is reaped. The kernel
// does not: a server that changes the credentials of its first thread loses the signal of its parent's death.
func killWithTests(t *testing.T, pid int) (release func()) {
	t.Helper()
	guard := exec.Command("sh", "-c", `cat; kill -KILL "$1"`, "sh", strconv.Itoa(pid))
	open, err := guard.StdinPipe() // until this process ends
	if err == nil {
		err = guard.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = guard.Process.Kill()
		_ = guard.Wait() // for its end by the signal
		_ = open.Close()
	}
}

func (n *node) failIfEnded(t *testing.T) {
	t.Helper()
	select {
	case <-n.ended:
		t.Fatalf("node %s has ended: %v\n%s", n.name, n.ProcessState, n.log)
	default:
	}
}

// restart starts a node that has ended, with the same addresses. It fails while the ports are in use.
func (n *node) restart(t *testing.T, flags ...string) {
	t.Helper()
	n.start(t, append([]string{"--fleet-address", n.peers}, flags...)...)
}

func (n *node) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := n.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// stop ends the node in good order.
func (n *node) stop(t *testing.T) {
	t.Helper()
	n.signal(t, unix.SIGTERM)
	n.waitEnd(t)
	if code := n.ProcessState.ExitCode(); code != 0 {
		t.Errorf("node %s exits with %d:\n%s", n.name, code, n.log)
	}
}

func (n *node) waitEnd(t *testing.T) {
	t.Helper()
	select {
	case <-n.ended:
	case <-time.After(time.Minute):
		t.Fatalf("node %s does not end:\n%s", n.name, n.log)
	}
}

// kill kills the node. It returns when its processes have ended.
func (n *node) kill(t *testing.T) {
	t.Helper()
	_ = n.Process.Kill() // it may have ended
	<-n.ended
	harness.WaitFor(t, "the engine of node "+n.name+" ends with it", func() bool { return n.engine() == 0 })
}

// engine returns the process of the node's nats-server, 0 if there is none.
func (n *node) engine() (pid int) {
	for _, p := range programsOf(n.store) {
		if p.name == "nats-server" {
			pid = p.pid
		}
	}
	return pid
}

// program is a process of this machine.
type program struct {
	pid  int
	name string
}

// programsOf lists the processes with an argument that contains text, without zombies.
func programsOf(text string) (list []program) {
	for _, dir := range harness.Glob("/proc/[0-9]*") {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil || pid == os.Getpid() || !strings.Contains(string(args), text) {
			continue
		}
		name, _, _ := strings.Cut(string(args), "\x00")
		list = append(list, program{pid, filepath.Base(name)})
	}
	return list
}

// waitLog waits for a line of the node's log with a message, and returns its fields.
func (n *node) waitLog(t *testing.T, message string) (line map[string]string) {
	t.Helper()
	harness.WaitFor(t, fmt.Sprintf("node %s logs %q", n.name, message), func() bool {
		lines := n.log.with(message)
		if len(lines) == 0 {
			n.failIfEnded(t)
			return false
		}
		line = lines[len(lines)-1]
		return true
	})
	return line
}

// serverLog is a server's log.
type serverLog struct {
	mu    sync.Mutex
	lines []string
}

func (l *serverLog) read(r io.Reader) {
	for s := bufio.NewScanner(r); s.Scan(); {
		l.mu.Lock()
		l.lines = append(l.lines, s.Text())
		l.mu.Unlock()
	}
}

// String returns the whole log.
func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// with returns the fields that are strings of the lines with a message.
func (l *serverLog) with(message string) (found []map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range l.lines {
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) != nil || fields["msg"] != message {
			continue
		}
		line := map[string]string{}
		for name, value := range fields {
			line[name] = fmt.Sprint(value)
		}
		found = append(found, line)
	}
	return found
}

// cgroups lists the cgroups of the fleet's tenants, the deepest ones first.
func (c *cluster) cgroups() (dirs []string) {
	for _, name := range c.names {
		for _, below := range []string{"/*/*", "/*", ""} {
			group := "/gaol/tenants/token-" + name + below
			dirs = append(dirs, harness.Glob("/sys/fs/cgroup/*"+group+"/cgroup.procs", "/sys/fs/cgroup"+group+"/cgroup.procs")...)
		}
	}
	for i, procs := range dirs {
		dirs[i] = filepath.Dir(procs)
	}
	return dirs
}

// removeCgroups removes the cgroups of servers that were killed, whose processes have ended.
func (c *cluster) removeCgroups() {
	for range 2 {
		for _, dir := range c.cgroups() {
			_ = os.Remove(dir) // one with processes remains, which fails the next test of leaks
		}
	}
}

// procOf returns the folder of a process in /proc.
func procOf(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// zygotesOf returns the pattern of the cgroups of a server's zygotes in a hierarchy.
func zygotesOf(hierarchy string, pid int) string {
	return fmt.Sprintf("%s/gaol/tenants/zygote-%d-*", hierarchy, pid)
}
