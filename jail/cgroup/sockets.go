package cgroup

import "fmt"

// SocketMemory is how many bytes the group is charged for the queues of its sockets.
func (g *Group) SocketMemory() (n int64, err error) {
	err = g.use(func() error {
		n, err = g.on.socketMemory(g.path)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cgroup: socket memory of %s: %w", g.path, err)
	}
	return n, nil
}

func (v *v1) socketMemory(path string) (n int64, err error) {
	err = optional(readInt(&n, v.dir("memory", path)+"/memory.kmem.tcp.usage_in_bytes"))
	return n, err
}

func (v *v2) socketMemory(path string) (n int64, err error) {
	err = readKey(&n, v.dir(path)+"/memory.stat", "sock")
	return n, err
}
