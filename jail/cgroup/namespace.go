package cgroup

import (
	"errors"
	"fmt"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Device is a character device that a group may use.
type Device struct {
	Major int64
	Minor int64 // AnyMinor: all
}

// AnyMinor matches all minor numbers. The library uses the same value.
const AnyMinor = -1

// NewNamespaceRoot creates the group at path as the root of a cgroup namespace. It exists
// in every hierarchy of the machine, including those without limits, so that the namespace
// hides the parent groups in all of them. Processes in it and in groups below may use only
// the given devices. It has no limits; [New] creates groups below it.
func NewNamespaceRoot(path string, devices []Device) (*Group, error) {
	on, err := machineBackend()
	if err != nil {
		return nil, err
	}
	return newNamespaceRoot(on, path, devices)
}

func newNamespaceRoot(on backend, path string, devices []Device) (*Group, error) {
	g, err := newGroup(on, path, Limits{})
	if err != nil {
		return nil, err
	}
	if err := on.initRoot(path, deviceRules(devices)); err != nil {
		return nil, errors.Join(fmt.Errorf("cgroup: create %s: %w", path, err), g.Delete())
	}
	return g, nil
}

// OtherDirs returns the directories of a namespace root that are not in [Group.Dirs].
func (g *Group) OtherDirs() []string { return g.on.otherDirs(g.path) }

// deviceRules deny all devices but the given ones.
func deviceRules(devices []Device) []specs.LinuxDeviceCgroup {
	all := int64(AnyMinor)
	rules := []specs.LinuxDeviceCgroup{{Type: "a", Major: &all, Minor: &all, Access: "rwm"}}
	for _, d := range devices {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &d.Major, Minor: &d.Minor, Access: "rw"})
	}
	return rules
}
