package runtime

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"

	"gaol/policy"
	"gaol/runtime/internal/enforce"
)

// maxListed is how many of an error's Errors its text lists.
const maxListed = 3

// chain returns the message with those of the causes, which the message itself may contain.
func (e *GuestError) chain() string {
	parts := []string{e.Message}
	add := func(text string) {
		if text != "" && !strings.Contains(e.Message, text) {
			parts = append(parts, text)
		}
	}
	if e.Cause != nil {
		add(e.Cause.chain())
	}
	var list []string
	for _, inner := range e.Errors[:min(len(e.Errors), maxListed)] {
		list = append(list, inner.chain())
	}
	add(strings.Join(list, "; "))
	if e.Message == "" && len(parts) > 1 { // as an AggregateError of connections
		parts = parts[1:]
	}
	return strings.Join(parts, ": ")
}

// Trace returns Stack with the text of Error instead of its first line, or that text if there is no stack.
func (e *GuestError) Trace() string {
	head := strings.TrimPrefix(e.Name+": "+e.Message, ": ")
	if e.Message == "" {
		head = e.Name
	}
	if rest, found := strings.CutPrefix(e.Stack, head); found && head != "" {
		return e.Error() + rest
	}
	if strings.Contains(e.Stack, e.Message) && e.Stack != "" {
		return e.Stack // with a name of its own
	}
	return e.Error()
}

// deniedBy returns the rule by which one of the denials caused the error, or "".
func (e *GuestError) deniedBy(denials []Denial) string {
	if e == nil || len(denials) == 0 {
		return ""
	}
	targets := e.targets()
	for _, d := range denials {
		if d.Scope == policy.Network && d.Rule != enforce.HostPorts && len(targets) > 0 && (d.Operation == "socket" || slices.Contains(targets, d.Target)) {
			return d.Rule
		}
	}
	if rule := e.Cause.deniedBy(denials); rule != "" {
		return rule
	}
	for _, inner := range e.Errors {
		if rule := inner.deniedBy(denials); rule != "" {
			return rule
		}
	}
	return ""
}

// targets returns what Node wanted to reach, as denials name it.
func (e *GuestError) targets() (list []string) {
	var hostname, address string
	var port uint16
	for name, v := range map[string]any{"hostname": &hostname, "address": &address, "port": &port} {
		_ = json.Unmarshal(e.Properties[name], v) // another type is not what Node writes
	}
	if hostname != "" {
		list = append(list, "dns://"+hostname)
	}
	if address != "" && port > 0 {
		list = append(list, "tcp://"+net.JoinHostPort(address, strconv.Itoa(int(port))))
	}
	return list
}
