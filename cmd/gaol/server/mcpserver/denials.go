package mcpserver

import (
	"fmt"

	"gaol/cmd/gaol/flags"
	"gaol/policy"
	"gaol/runtime"
)

// Denial is an operation that permissions denied to a run.
type Denial struct {
	Scope     string `json:"scope" jsonschema:"fs, network, childProcess, process or env"`
	Operation string `json:"operation" jsonschema:"Such as read or connect."`
	Target    string `json:"target" jsonschema:"A path, an address or the kind of a socket, if it is known."`
	Address   string `json:"address,omitempty" jsonschema:"What the name in target resolves to, if the rules refuse that address."`
	Rule      string `json:"rule" jsonschema:"The rule that denied it."`
	Count     int64  `json:"count" jsonschema:"How often."`
	Source    string `json:"source" jsonschema:"How it became known: stderr is a hint only."`
	AllowWith string `json:"allowWith,omitempty" jsonschema:"The permission of a new sandbox that would allow it, unless the server forbids it."`

	text string
}

// argument is what the advice about denials names.
const argument = "permissions of create_sandbox"

// denials describes the denials of a run with some permissions.
func (e *endpoint) denials(p policy.Permissions, list []runtime.Denial) []Denial {
	advice := flags.Advice{Permissions: p, Argument: argument, Accept: e.service.Allows}.For(list)
	described := []Denial{}
	for i, d := range list {
		described = append(described, Denial{
			d.Scope, string(d.Operation), d.Target, d.Address, d.Rule, d.Count, string(d.Source), advice[i], flags.DenialText(d),
		})
	}
	return described
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
