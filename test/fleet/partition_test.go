package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gaol/test/harness"
	"gaol/test/tier"
)

const (
	cutFor  = 30 * time.Second // of the network
	maxHang = 25 * time.Second // of a request to a node that cannot be reached
)

// partition is a fleet whose nodes are in network namespaces.
type partition struct {
	*chaos
	wires *wires
	homes []*counter // a sandbox of each node, which is used only through that
}

// startPartition starts a fleet with four nodes. The first one runs the engine.
func startPartition(t *testing.T) *partition {
	t.Helper()
	w := newWires(t, 4)
	c := newCluster(t)
	for i, space := range w.nodes {
		n := c.prepare(t, string(rune('a'+i)))
		n.space = space
		flags := []string{"--fleet-address", w.address(i) + ":8641"}
		if i == 0 {
			flags = append(flags, "--fleet")
		} else {
			flags = append(flags, c.nodes[0].join(c.nodes[0].token(t))...)
		}
		n.start(t, flags...)
		c.nodes = append(c.nodes, n)
	}
	p := &partition{chaos: loadCluster(t, c), wires: w, homes: make([]*counter, len(c.nodes))}
	p.mayLose = p.isLost
	p.waitLive(t)
	return p
}

// isLost reports whether a node was declared dead.
func (p *partition) isLost(id string) bool {
	return slices.ContainsFunc(p.nodes, func(n *node) bool {
		return slices.ContainsFunc(n.log.with("a node is lost"), func(line map[string]string) bool { return line["peer"] == id })
	})
}

// waitLive waits until all nodes see all nodes as live, and notes their ids.
func (p *partition) waitLive(t *testing.T) {
	t.Helper()
	for _, viewer := range p.nodes {
		for _, n := range p.nodes {
			harness.WaitFor(t, fmt.Sprintf("node %s sees %s as live", viewer.name, n.name), func() bool {
				n.id = n.list(t).Own
				return viewer.states(t)[n.id] == "live"
			})
		}
	}
}

// TestPartition takes down the network of a worker, of the node with the engine, and between two halves, for half a minute each.
// Meanwhile it submits batch runs and counts in sandboxes, through all nodes. Each node serves its own sandboxes all the time. All
// are live again afterwards, and only sandboxes on nodes that were declared dead are lost.
func TestPartition(t *testing.T) {
	tier.Fleet(t)
	p := startPartition(t)
	stop := make(chan struct{})
	var load sync.WaitGroup
	for worker := range 2 {
		load.Go(func() {
			for i := 0; !isClosed(stop); i++ {
				p.submit(t, fmt.Sprintf("partition-%d-%d", worker, i), i)
			}
		})
	}
	for i := range 2 * len(p.nodes) {
		p.addCounter(t, p.nodes[i%len(p.nodes)])
	}
	for _, k := range p.counters {
		harness.WaitFor(t, "a sandbox counts", func() bool { return p.countIn(t, k, p.callers[0]) })
		load.Go(func() {
			for !isClosed(stop) && !k.lost {
				p.countIn(t, k, p.callers[rand.IntN(len(p.callers))])
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	for _, cut := range []struct {
		name string
		in   *space
		link string
		dies int // the node that is declared dead; 0: none
	}{
		{"worker", p.wires.nodes[2], "eth0", 2},
		{"engine", p.wires.hub, p.wires.port(0), 0},
		{"halves", p.wires.hub, cable, 0},
	} {
		t.Run(cut.name, func(t *testing.T) {
			before := make([]string, len(p.nodes))
			for i, n := range p.nodes {
				before[i] = n.id
				if p.homes[i] == nil || ownerOf(idOf(p.homes[i].path)) != n.id {
					path := n.as(t, ada).create(nil)
					p.homes[i] = &counter{path: path, node: n.id}
				}
			}
			cut.in.ip(t, "link set "+cut.link+" down")
			p.serveHomes(t)
			cut.in.ip(t, "link set "+cut.link+" up")
			up := time.Now()
			p.waitLive(t)
			t.Logf("all nodes are live again after %v", time.Since(up))
			for i, n := range p.nodes {
				if died := n.id != before[i]; died != (cut.dies == i && i > 0) || died != p.isLost(before[i]) {
					t.Errorf("node %s was %s, and is %s", n.name, before[i], n.id)
				}
			}
			p.resume(t)
		})
	}
	close(stop)
	load.Wait()
	p.wantResults(t)
	p.report(t)
}

// serveHomes counts in a sandbox of each node, through that, while a part of the network is down.
func (p *partition) serveHomes(t *testing.T) {
	end := time.Now().Add(cutFor)
	var serving sync.WaitGroup
	for i, home := range p.homes {
		serving.Go(func() {
			for first := home.value; time.Now().Before(end) || home.value == first; time.Sleep(20 * time.Millisecond) {
				if !p.countIn(t, home, p.callers[i]) {
					t.Errorf("node %s does not serve its sandbox", p.nodes[i].name)
					return
				}
			}
		})
	}
	serving.Wait()
}

// resume uses a sandbox of each node through each other one.
func (p *partition) resume(t *testing.T) {
	t.Helper()
	for _, home := range p.homes {
		if p.isLost(home.node) {
			continue
		}
		for _, by := range p.callers {
			begin := time.Now()
			if !p.countIn(t, home, by) {
				t.Errorf("node %s does not serve %s", by.n.name, home.path)
			}
			if took := time.Since(begin); took > maxHang {
				t.Errorf("a request through node %s took %v", by.n.name, took)
			}
		}
	}
}

// report checks the load as a whole.
func (p *partition) report(t *testing.T) {
	t.Helper()
	lost := 0
	for _, k := range p.counters {
		if k.lost {
			lost++
		}
		if k.value == 0 || k.lost != p.isLost(k.node) {
			t.Errorf("%s has counted to %d; it is lost: %t", k.path, k.value, k.lost)
		}
	}
	worst := time.Duration(p.worst.Load())
	t.Logf("%d keys, %d with a second attempt; %d of %d sandboxes lost; the slowest request took %v", len(p.accepted), p.again, lost, len(p.counters), worst)
	if len(p.accepted) == 0 || worst > maxHang {
		t.Errorf("%d keys, a request took %v", len(p.accepted), worst)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
