package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gaol/internal/kernfile"
)

// space is a network namespace. It ends with its process, also when the tests are killed.
type space struct {
	*exec.Cmd
	file *os.File // of /proc/PID/ns
}

// newSpace makes a network namespace, in which only the loopback interface is up.
func newSpace(t *testing.T) *space {
	t.Helper()
	holder := exec.Command("cat")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	open, err := holder.StdinPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &space{Cmd: holder}
	t.Cleanup(func() {
		if err := errors.Join(open.Close(), holder.Wait()); err != nil {
			t.Error(err)
		}
	})
	if s.file, err = os.Open(procOf(holder.Process.Pid) + "/ns/net"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.file.Close() }) // nothing was written
	s.ip(t, "link set lo up")
	return s
}

// command returns a command in the namespace; nil: in that of the tests. The process is the command's, because nsenter becomes it.
func (s *space) command(name string, args ...string) *exec.Cmd {
	if s == nil {
		return exec.Command(name, args...)
	}
	return exec.Command("nsenter", slices.Concat([]string{"--net=" + procOf(s.Process.Pid) + "/ns/net", name}, args)...)
}

// ip runs ip in the namespace with arguments that are separated by spaces.
func (s *space) ip(t *testing.T, args string) {
	t.Helper()
	if out, err := s.command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

// dial connects from the namespace; nil: from that of the tests.
func (s *space) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	dial := func() error {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	}
	if s == nil {
		return c, dial()
	}
	return c, kernfile.InNetwork(s.file, dial)
}

// wires connects namespaces by two bridges, which a cable connects.
type wires struct {
	hub   *space
	nodes []*space
}

// cable is the interface of the first bridge that leads to the second one.
const cable = "cable"

// newWires connects a number of new namespaces, of which the first half is at the first bridge.
func newWires(t *testing.T, nodes int) *wires {
	t.Helper()
	w := &wires{hub: newSpace(t)}
	w.hub.ip(t, "link add left type bridge")
	w.hub.ip(t, "link add right type bridge")
	w.hub.ip(t, "link add "+cable+" type veth peer name cable2")
	w.hub.ip(t, "link set "+cable+" master left")
	w.hub.ip(t, "link set cable2 master right")
	for _, link := range []string{"left", "right", cable, "cable2"} {
		w.hub.ip(t, "link set "+link+" up")
	}
	for i := range nodes {
		s, bridge := newSpace(t), "left"
		if i >= nodes/2 {
			bridge = "right"
		}
		w.hub.ip(t, fmt.Sprintf("link add %s type veth peer name eth0 netns %d", w.port(i), s.Process.Pid))
		w.hub.ip(t, fmt.Sprintf("link set %s master %s up", w.port(i), bridge))
		s.ip(t, "addr add "+w.address(i)+"/24 dev eth0")
		s.ip(t, "link set eth0 up")
		w.nodes = append(w.nodes, s)
	}
	return w
}

// port is the interface of a bridge that leads to a node.
func (w *wires) port(node int) string { return "port" + strconv.Itoa(node) }

// address is the address of a node.
func (w *wires) address(node int) string { return "10.86.41." + strconv.Itoa(node+1) }
