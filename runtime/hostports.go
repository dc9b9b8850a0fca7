package runtime

import (
	"fmt"
	"io/fs"
	"slices"
)

// maxHostPorts bounds Options.HostPorts: each port takes two sockets.
const maxHostPorts = 64

// checkHostPorts returns the ports of Options.HostPorts.
func checkHostPorts(ports []int) (list []uint16, err error) {
	if len(ports) > maxHostPorts {
		return nil, optionError("HostPorts", "%d ports; the limit is %d", len(ports), maxHostPorts)
	}
	for _, port := range ports {
		switch {
		case port < 1 || port > 65535:
			return nil, optionError("HostPorts", "%d is not a port", port)
		case slices.Contains(list, uint16(port)):
			return nil, optionError("HostPorts", "%d is listed twice", port)
		}
		list = append(list, uint16(port))
	}
	return list, nil
}

// permit sets the permissions and the ports of the host, which depend on each other.
func (s *settings) permit(o Options) (err error) {
	if s.hostPorts, err = checkHostPorts(o.HostPorts); err != nil {
		return err
	}
	if err := s.setPermissions(o.Permissions); err != nil {
		return optionError("Permissions", "%w", err)
	}
	return s.allowHostPorts()
}

// allowHostPorts refuses a port to which no guest may connect.
func (s *settings) allowHostPorts() error {
	for _, port := range s.hostPorts {
		if !slices.Contains(s.plan.Net.Host, port) {
			return optionError("HostPorts", `the permissions deny port %d; this rule of the network scope allows it: {"mode": "allow", "operations": ["fetch", "connect"], "patterns": ["tcp://localhost:%d"]}`, port, port)
		}
	}
	return nil
}

// checkNotHostPort refuses a port on which the guest cannot listen, because it leads to the host.
func (s *settings) checkNotHostPort(port uint16) error {
	if slices.Contains(s.hostPorts, port) {
		return fmt.Errorf("localhost:%d is a port of the host by HostPorts: %w", port, fs.ErrPermission)
	}
	return nil
}
