package mcpserver

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	"gaol/cmd/gaol/flags"
	"gaol/policy"
	"gaol/runtime"
)

// Denial is an operation that permissions denied to a run.
type Denial struct {
	Scope     string `json:"scope" jsonschema:"fs, network, childProcess, process or env"`
	Operation string `json:"operation" jsonschema:"Such as read or connect."`
	Target    string `json:"target" jsonschema:"A path, an address or the kind of a socket, if it is known."`
	Rule      string `json:"rule" jsonschema:"The rule that denied it."`
	Count     int64  `json:"count" jsonschema:"How often."`
	Source    string `json:"source" jsonschema:"How it became known: stderr is a hint only."`
	AllowWith string `json:"allowWith,omitempty" jsonschema:"The permission of a new sandbox that would allow it, unless the server forbids it."`

	text string
}

// argument is what the advice about denials names.
const argument = "permissions of create_sandbox"

// denials describes the denials of a run with some permissions. failed is the error of its code, if
// that is known.
func (e *endpoint) denials(p policy.Permissions, list []runtime.Denial, failed *runtime.GuestError) []Denial {
	if h := hint(list, failed); h != nil {
		list = append(slices.Clip(list), *h)
	}
	advice := flags.Advice{Permissions: p, Argument: argument, Accept: e.service.Allows}.For(list)
	described := []Denial{}
	for i, d := range list {
		described = append(described, Denial{
			d.Scope, string(d.Operation), d.Target, d.Rule, d.Count, string(d.Source), advice[i], flags.DenialText(d),
		})
	}
	return described
}

// hint returns which host code wanted to reach that may not have sockets, as its error says. It is nil
// if that is not known. For programs that print their error, package runtime does the same.
func hint(list []runtime.Denial, failed *runtime.GuestError) *runtime.Denial {
	i := slices.IndexFunc(list, func(d runtime.Denial) bool { return d.Scope == policy.Network && d.Operation == "socket" })
	if i < 0 {
		return nil
	}
	for ; failed != nil; failed = failed.Cause {
		var p struct {
			hostname, address string
			port              uint16
		}
		for name, v := range map[string]any{"hostname": &p.hostname, "address": &p.address, "port": &p.port} {
			_ = json.Unmarshal(failed.Properties[name], v) // another type is not what Node writes
		}
		d := runtime.Denial{Scope: policy.Network, Rule: list[i].Rule, Count: 1, Source: runtime.SourceStderr}
		switch {
		case policy.ValidName(p.hostname):
			d.Operation, d.Target = "dns", "dns://"+p.hostname
			return &d
		case p.port > 0 && net.ParseIP(p.address) != nil:
			d.Operation, d.Target = "connect", "tcp://"+net.JoinHostPort(p.address, strconv.Itoa(int(p.port)))
			return &d
		}
	}
	return nil
}

// denialLines are the first denials as text.
func denialLines(list []Denial) (lines []string) {
	for i, d := range list {
		if i == flags.MaxDenials {
			return append(lines, fmt.Sprintf("denied: %d more", len(list)-i))
		}
		if d.AllowWith != "" {
			d.text += "; allow with " + d.AllowWith
		}
		lines = append(lines, d.text)
	}
	return lines
}
