package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"gaol/policy"
	"gaol/runtime/internal/enforce"
)

// ErrUnsupported is wrapped by errors that mean that this machine cannot run a sandbox, or
// not with these options.
var ErrUnsupported = errors.ErrUnsupported

// OptionError reports an option whose value is invalid. It names the option's field.
type OptionError struct {
	Option string
	Err    error
}

// Error is "option Cwd: ...".
func (e *OptionError) Error() string { return "option " + e.Option + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *OptionError) Unwrap() error { return e.Err }

// ofOption returns the error about an option; nil if err is.
func ofOption(option string, err error) error {
	if err == nil {
		return nil
	}
	return &OptionError{option, err}
}

func optionError(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}

// maxListed is how many of an error's Errors its text lists.
const maxListed = 3

// chain joins the messages of the error and its causes. A message may already contain its cause's.
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
		return e.Stack // it begins with another name than Name
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
		if d.Scope == policy.Limits && (e.Code == "ENOSPC" || e.Code == "EFBIG") {
			return d.Rule
		}
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
