package api

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"gaol/cmd/gaol/server/operation"
	"gaol/cmd/gaol/server/service"
)

// tags are the kinds of operations.
var tags = []*huma.Tag{
	{Name: "run", Description: "Programs and snippets, each in a separate process."},
	{Name: "evaluate", Description: "Snippets as models write them, each in a new sandbox."},
	{Name: "sandboxes", Description: "Sandboxes, which keep their files between runs."},
	{Name: "processes", Description: "Processes that may live as long as their sandbox."},
	{Name: "contexts", Description: "Contexts, which keep the declarations of their cells, as notebooks do."},
	{Name: "files", Description: "Files of a sandbox."},
	{Name: "listeners", Description: "Ports on which a sandbox listens."},
	{Name: "ports", Description: "Requests to servers of a sandbox."},
	{Name: "snippets", Description: "Examples of a framework's users."},
	{Name: "snapshots", Description: "Copies of a sandbox's folders."},
	{Name: "images", Description: "Images that you build from others."},
}

// dataResponses are the responses of operations that return data.
var dataResponses = map[string]map[string]*huma.Response{
	"readFile": {
		"200": {Description: "The content of the file.", Content: binary(operation.Octets)},
		"206": {Description: "The range that the header Range asks for.", Content: binary(operation.Octets, "multipart/byteranges")},
		"304": {Description: "The file has not changed since the time that the request has."},
	},
	"packFolder": {
		"200": {Description: "The archive. The trailer Gaol-Skipped has the number of files that it lacks. It ends early if the server fails.", Content: binary(operation.Tar)},
	},
}

// document is the OpenAPI document.
type document struct{ *huma.OpenAPI }

// newDocument describes all operations.
func newDocument(version string) *huma.OpenAPI {
	d := document{&huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "gaol", Version: version, Contact: &huma.Contact{Name: "The operator of this server"},
			Description: "Runs untrusted Node.js programs in sandboxes that the kernel enforces.",
		},
		Components: &huma.Components{Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName)},
		Servers:    []*huma.Server{{URL: "/", Description: "The server's unix socket, or its TCP address."}},
		Tags:       tags,
	}}
	operation.RegisterForms(d.Components.Schemas)
	for _, o := range operation.All() {
		if o.Path != "" {
			d.add(&huma.Operation{
				OperationID: o.Name, Method: o.Method, Path: o.Path, Summary: o.Summary, Description: o.Doc, Tags: []string{o.Tag},
				Parameters: d.parameters(o), RequestBody: d.body(o), Responses: d.responses(o),
			})
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		d.add(portOperation(method))
	}
	operation.CompleteSchemas(d.Components.Schemas)
	schemas := d.Components.Schemas.Map()
	// It is null without an error, which huma cannot express for an object.
	evaluation := schemas["Evaluation"]
	evaluation.Properties["error"] = &huma.Schema{OneOf: []*huma.Schema{evaluation.Properties["error"], {Type: "null"}}}
	for _, name := range []string{"SnippetOutput", "SnippetResult"} {
		schemas[name].Properties["facts"].Type, schemas[name].Properties["derived"].Type = huma.TypeObject, huma.TypeObject
	}
	return d.OpenAPI
}

// add adds an operation with the response that all errors have.
func (d document) add(op *huma.Operation) {
	schema := d.Components.Schemas.Schema(problemType, true, "")
	op.Responses["default"] = &huma.Response{Description: "An error.", Content: map[string]*huma.MediaType{typeProblem: {Schema: schema}}}
	d.AddOperation(op)
}

// parameters describes the fields of an input that are in the path or the query, in this order.
func (d document) parameters(o *operation.Operation) (list []*huma.Param) {
	all := o.Input.Schema.Properties
	add := func(name, in string) {
		schema := *all[name]
		schema.Description = ""
		p := &huma.Param{Name: name, In: in, Required: in == "path" || slices.Contains(o.Input.Schema.Required, name) || isPath(o, name), Description: all[name].Description, Schema: &schema}
		if name == "lastEventId" {
			p.Name, p.In = "Last-Event-ID", "header"
		}
		list = append(list, p)
	}
	for _, f := range o.PathFields {
		add(f.Field, "path")
		list[len(list)-1].Name = f.Name
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if o.Query && !o.InPath(name) && !isPath(o, strings.TrimSuffix(name, "Bytes")) || isPath(o, name) {
			add(name, "query")
		}
	}
	return list
}

// isPath reports whether a field is a path in a sandbox, which a query has as bytes.
func isPath(o *operation.Operation, name string) bool {
	return o.Query && o.Input.Schema.Properties[name] != nil && o.Input.Schema.Properties[name+"Bytes"] != nil
}

// body describes the body of a request, nil if it has none.
func (d document) body(o *operation.Operation) *huma.RequestBody {
	if o.Upload != nil {
		return &huma.RequestBody{Description: "The data.", Required: true, Content: binary(o.Upload...)}
	}
	if !o.HasBody() {
		return nil
	}
	ref := d.Components.Schemas.Schema(o.Input.Type, true, o.Name)
	schema := d.Components.Schemas.SchemaFromRef(ref.Ref)
	for _, f := range o.PathFields { // of this and other operations with the type
		delete(schema.Properties, f.Field)
		schema.Required = slices.DeleteFunc(schema.Required, func(s string) bool { return s == f.Field })
	}
	return &huma.RequestBody{Required: !o.BodyOptional, Content: map[string]*huma.MediaType{typeJSON: {Schema: ref}}}
}

// responses describes the responses of an operation that are not errors.
func (d document) responses(o *operation.Operation) map[string]*huma.Response {
	if special := dataResponses[o.Name]; special != nil {
		return maps.Clone(special)
	}
	if o.EventsOnly {
		return map[string]*huma.Response{
			"200": {Description: "OK", Content: map[string]*huma.MediaType{typeEvents: {Schema: d.events(o.Events, o.Input.Schema.Properties["lastEventId"] != nil)}}},
			"204": {Description: "The client has got the last event."},
		}
	}
	if o.Output == nil {
		return map[string]*huma.Response{"204": {Description: "No Content"}}
	}
	status := max(o.Status, http.StatusOK)
	r := &huma.Response{
		Description: http.StatusText(status),
		Content:     map[string]*huma.MediaType{typeJSON: {Schema: d.Components.Schemas.Schema(o.Output, true, o.Name)}},
	}
	if o.Events != nil {
		r.Description = "OK. Events are sent if the header Accept prefers text/event-stream."
		r.Content[typeEvents] = &huma.MediaType{Schema: d.events(o.Events, false)}
	}
	return map[string]*huma.Response{strconv.Itoa(status): r}
}

// events describes a response of server-sent events.
func (d document) events(events []operation.EventType, withID bool) *huma.Schema {
	var kinds []any
	for _, e := range events {
		data := problemType
		if e.Name != service.EventError {
			data = reflect.TypeOf(e.Data)
		}
		kind := &huma.Schema{
			Type: huma.TypeObject, Description: e.Doc, Required: []string{"event", "data"},
			Properties: map[string]*huma.Schema{
				"event": {Type: huma.TypeString, Enum: []any{string(e.Name)}},
				"data":  d.Components.Schemas.Schema(data, true, ""),
			},
		}
		if withID {
			kind.Properties["id"] = &huma.Schema{Type: huma.TypeInteger, Description: "The event's number, for Last-Event-ID."}
			kind.Required = append(kind.Required, "id")
		}
		kinds = append(kinds, kind)
	}
	return &huma.Schema{
		Type:        huma.TypeArray,
		Description: "Server-sent events. The data of each is one line of JSON. Comments keep the connection alive.",
		Items:       &huma.Schema{Extensions: map[string]any{"oneOf": kinds}},
	}
}

// binary describes bytes of any kind.
func binary(kinds ...string) map[string]*huma.MediaType {
	content := map[string]*huma.MediaType{}
	for _, kind := range kinds {
		content[kind] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	}
	return content
}

// portOperation describes a method of [WithPorts] in the document.
func portOperation(method string) *huma.Operation {
	least, most := 1.0, 65535.0
	param := func(name, doc string, schema *huma.Schema) *huma.Param {
		return &huma.Param{Name: name, In: "path", Required: true, Description: doc, Schema: schema}
	}
	op := &huma.Operation{
		OperationID: "port" + method[:1] + strings.ToLower(method[1:]), Method: method, Path: portsPath, Tags: []string{"ports"},
		Summary:     "Send a " + method + " request to a server of the sandbox",
		Description: "The path may have any number of segments, and a query. WebSocket and event streams work. The body may have any type.",
		Parameters: []*huma.Param{
			param("id", "The sandbox.", &huma.Schema{Type: huma.TypeString}),
			param("port", "A TCP port on which a guest listens.", &huma.Schema{Type: huma.TypeInteger, Minimum: &least, Maximum: &most}),
			param("path", "The path on the guest's server.", &huma.Schema{Type: huma.TypeString}),
		},
		Responses: map[string]*huma.Response{"200": {Description: "The reply of the guest's server.", Content: binary("*/*")}},
	}
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		op.RequestBody = &huma.RequestBody{Description: "A body of any type.", Content: binary("*/*")}
	}
	return op
}

const portsPath = "/v1/sandboxes/{id}/ports/{port}/{path}"

// schemaName names a type in the document. Snippets have types with the names of others.
func schemaName(t reflect.Type, hint string) string {
	name, of := huma.DefaultSchemaNamer(t, hint), t
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if strings.Contains(of.PkgPath(), "/runtime/snippets") {
		return "Snippet" + name
	}
	return name
}
