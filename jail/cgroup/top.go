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

// AnyMinor stands for all minor numbers, as the library has it.
const AnyMinor = -1

// NewTop makes the group at path that a cgroup namespace begins at: one in every
// hierarchy that this machine has, those too that no limit needs, so that what is
// above it shows in none. Its processes, and those of the groups below, can use the
// given devices and no others. It has no limits; [New] makes groups below it.
func NewTop(path string, devices []Device) (*Group, error) {
	on, err := thisMachine()
	if err != nil {
		return nil, err
	}
	return newTop(on, path, devices)
}

func newTop(on backend, path string, devices []Device) (*Group, error) {
	g, err := newGroup(on, path, Limits{})
	if err != nil {
		return nil, err
	}
	if err := on.makeTop(path, deviceRules(devices)); err != nil {
		return nil, errors.Join(fmt.Errorf("cgroup: make %s: %w", path, err), g.Delete())
	}
	return g, nil
}

// OtherDirs are the directories of a group that NewTop made, besides [Group.Dirs].
func (g *Group) OtherDirs() []string { return g.on.otherDirs(g.path) }

// deviceRules deny all that they do not allow.
func deviceRules(devices []Device) []specs.LinuxDeviceCgroup {
	all := int64(AnyMinor)
	rules := []specs.LinuxDeviceCgroup{{Type: "a", Major: &all, Minor: &all, Access: "rwm"}}
	for _, d := range devices {
		rules = append(rules, specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &d.Major, Minor: &d.Minor, Access: "rw"})
	}
	return rules
}
