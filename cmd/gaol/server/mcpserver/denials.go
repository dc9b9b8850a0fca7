package mcpserver

import (
	"fmt"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/server/operation"
	"gaol/runtime"
)

// denial is an operation that permissions denied to a run.
type denial struct {
	runtime.Denial
	AllowWith string `json:"allowWith,omitempty" doc:"The permission of a new sandbox that would allow it, unless the server forbids it."`
}

// argument is the argument that advice about denials names.
const argument = "permissions of create_sandbox"

// newDenials describes the denials of a run in a sandbox: an empty id is a fresh one.
func newDenials(c *operation.Call, sandbox string, list []runtime.Denial) []denial {
	described := []denial{}
	if len(list) == 0 {
		return described
	}
	advice := flags.Advice{Permissions: c.Service.PermissionsOf(c.Tenant, sandbox), Argument: argument, Accept: c.Service.Allows}.For(list)
	for i, d := range list {
		described = append(described, denial{d, advice[i]})
	}
	return described
}

// denialLines are the first denials as text.
func denialLines(list []denial) (lines []string) {
	for i, d := range list {
		if i == flags.MaxDenials {
			return append(lines, fmt.Sprintf("denied: %d more", len(list)-i))
		}
		line := flags.DenialText(d.Denial)
		if d.AllowWith != "" {
			line += "; allow with " + d.AllowWith
		}
		lines = append(lines, line)
	}
	return lines
}
