package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// completeDocument adds to the OpenAPI document what all operations have in common.
func (a *API) completeDocument() {
	doc := a.huma.OpenAPI()
	doc.Info.Contact = &huma.Contact{Name: "The operator of this server"}
	doc.Tags = tags
	doc.Servers = []*huma.Server{{URL: "/", Description: "The server's unix socket, or its TCP address."}}
	problem := doc.Components.Schemas.Schema(problemType, true, "")
	unexpected := &huma.Response{
		Description: "An error.",
		Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
	}
	// It is null without an error, which huma cannot say of an object.
	evaluation := doc.Components.Schemas.Map()["Evaluation"]
	evaluation.Properties["error"] = &huma.Schema{OneOf: []*huma.Schema{evaluation.Properties["error"], {Type: "null"}}}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Put, item.Post, item.Delete, item.Patch, item.Head, item.Options} {
			if op == nil {
				continue
			}
			op.Tags = []string{tagOf(path)}
			op.Responses["default"] = unexpected
			if text, ok := descriptions[op.OperationID]; ok {
				op.Description = text
			}
		}
	}
}

// tagOf returns the kind of thing that a path is about: "processes" for
// /v1/sandboxes/{id}/processes/{process}/stdin.
func tagOf(path string) string {
	if path == SnippetPath {
		return "snippets"
	}
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	if len(parts) < 3 || parts[0] != "sandboxes" {
		return parts[0]
	}
	switch parts[2] {
	case "run", "exec", "command", "evaluate":
		return "run"
	case "renew":
		return "sandboxes"
	}
	return parts[2]
}
