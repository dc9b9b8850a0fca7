package service

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// NodeModules is a folder of packages that a sandbox shows: in JSON the host's path as a string, or an
// object.
type NodeModules struct {
	HostPath  string `json:"hostPath"`            // of the server's machine, or snapshot:NAME
	GuestPath string `json:"guestPath,omitempty"` // in the sandbox; empty: node_modules in its working directory
}

// UnmarshalJSON accepts both forms. The schema has been checked before.
func (n *NodeModules) UnmarshalJSON(text []byte) error {
	*n = NodeModules{}
	if json.Unmarshal(text, &n.HostPath) == nil {
		return nil
	}
	type fields NodeModules
	if err := json.Unmarshal(text, (*fields)(n)); err != nil {
		return err
	}
	if n.HostPath == "" && n.GuestPath != "" {
		return errors.New("nodeModules: without a hostPath")
	}
	return nil
}

// Schema is the schema of both forms.
func (NodeModules) Schema(huma.Registry) *huma.Schema {
	text := func(doc string, least int) *huma.Schema {
		most := 4095
		return &huma.Schema{Type: huma.TypeString, Description: doc, MinLength: &least, MaxLength: &most}
	}
	object := &huma.Schema{
		Type: huma.TypeObject, AdditionalProperties: false, Required: []string{"hostPath"},
		Properties: map[string]*huma.Schema{
			"hostPath":  text("A folder of the server's machine, or snapshot:NAME.", 1),
			"guestPath": text("Where the sandbox shows it, such as /tmp/node_modules. By default node_modules in the working directory.", 1),
		},
	}
	return &huma.Schema{
		Description: "A folder of packages to show read-only. Programs below its parent find the packages.",
		OneOf:       []*huma.Schema{text("A folder of the server's machine, or snapshot:NAME, to show as node_modules in the working directory.", 0), object},
	}
}

// ofHost reports whether it is a folder of the server's machine.
func (n NodeModules) ofHost() bool {
	return n.HostPath != "" && !strings.HasPrefix(n.HostPath, snapshotScheme)
}
