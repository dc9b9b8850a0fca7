package mcpserver

import (
	"fmt"
	"strings"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/operation"
	"gaol/runtime"
)

// denial is an operation that permissions denied to a run.
type denial struct {
	runtime.Denial
	AllowWith string `json:"allowWith,omitempty" doc:"The permission of a new sandbox that would allow it, unless the server forbids it."`
}

// denials are the denied operations of a run.
type denials []denial

// argument is the argument that advice about denials names.
const argument = "permissions of create_sandbox"

// newDenials describes the denials of a run in a sandbox: an empty id is a fresh one.
func newDenials(c *operation.Call, sandbox string, list []runtime.Denial) denials {
	described := denials{}
	if len(list) == 0 {
		return described
	}
	advice := flags.Advice{Permissions: c.Service.PermissionsOf(c.Tenant, sandbox), Argument: argument, Accept: c.Service.Allows}.For(list)
	for i, d := range list {
		described = append(described, denial{d, advice[i]})
	}
	return described
}

// String describes the first ones, a line each.
func (list denials) String() string {
	var lines strings.Builder
	for i, d := range list {
		if i == flags.MaxDenials {
			fmt.Fprintf(&lines, "denied: %d more", len(list)-i)
			break
		}
		lines.WriteString(flags.DenialText(d.Denial))
		if d.AllowWith != "" {
			lines.WriteString("; allow with " + d.AllowWith)
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}
